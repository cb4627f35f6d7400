import { makeKeyCheck } from "../../base/crypto/key-check.js";
import { refusal } from "../../base/errors.js";
import type { Readiness } from "../../pool/operations.js";
import type { App } from "../app.js";
import type { HttpDeps } from "../deps.js";
import { sendRefusal } from "../errors.js";
import { operations } from "../schemas/operations.js";
import type { AuthContextReply } from "../schemas/replies.js";

/** Open to all: probes carry no key. */
export function addHealth(app: App, { readiness }: { readiness: Readiness }): void {
  app.get("/healthz", { schema: operations.getHealth }, async () => ({ status: "ok" }));
  app.get("/readyz", { schema: operations.getReadiness }, async (_request, reply) => {
    const reason = readiness.unready();
    return reason === undefined
      ? { status: "ready", store: readiness.hasStore() ? "connected" : "lost" }
      : sendRefusal(reply, refusal("unavailable", { message: reason }));
  });
}

interface MetricsParts extends Pick<HttpDeps, "key" | "metrics"> {
  /** Whether who comes with this Host header needs no key. */
  isOpen(host: string | undefined): boolean;
}

export function addMetrics(app: App, { key, metrics, isOpen }: MetricsParts): void {
  const isKey = makeKeyCheck(key);
  app.get("/metrics", { schema: operations.getMetrics }, async ({ headers }, reply) => {
    if (!isOpen(headers.host) && !isKey(headers.authorization))
      return sendRefusal(reply, refusal("unauthorized"));
    return reply.type(metrics.contentType).send(await metrics.text());
  });
}

/**
 * Who the one key there is stands for. Its `credential_id` is a text, since null means a session that is not
 * an API key; it names no resource until keys are ones.
 */
const rootContext: AuthContextReply = {
  authentication: { method: "api_key", source: "api_key", credential_id: "root" },
  principal: { type: "api_key", id: "root" },
  organization: { id: "default" },
  authorization: { credential_scope: { project_id: null }, effective_scope: { project_id: null } },
};

export function addAuth(app: App): void {
  app.get("/auth/context", { schema: operations.getAuthContext }, async () => rootContext);
}

/**
 * There are no projects yet, whatever is asked of them (docs/api.md#what-is-not-built); hence not in the
 * OpenAPI document.
 */
export function addProjects(app: App): void {
  for (const url of ["/org/projects", "/org/projects/*", "/projects", "/projects/*"]) {
    app.route({
      method: ["GET", "POST", "PUT", "PATCH", "DELETE"],
      url,
      schema: { hide: true },
      // Before the body is looked at, so that no body changes the answer.
      onRequest: async (_request, reply) => sendRefusal(reply, refusal("projects_disabled")),
      handler: (_request, reply) => sendRefusal(reply, refusal("projects_disabled")),
    });
  }
}
