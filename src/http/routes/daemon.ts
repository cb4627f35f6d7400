import { refusal } from "../../base/errors.js";
import { isClosedTo } from "../../access/authorize.js";
import { operationRules } from "../../access/operation-rules.js";
import type { Principal } from "../../access/principal.js";
import type { Readiness } from "../../pool/operations.js";
import type { App } from "../bare-app.js";
import { principalOf } from "../admission/caller.js";
import type { HttpDeps } from "../deps.js";
import { sendRefusal } from "../errors.js";
import type { NoteFailedLogin } from "../admission/rates.js";
import { operations } from "../schemas/operations.js";
import type { AuthContextReply } from "../schemas/access-replies.js";

/** Open to all: probes carry no key. */
export function addHealth(app: App, { readiness }: { readiness: Readiness }): void {
  app.get("/healthz", { schema: operations.getHealth }, async () => ({ status: "ok" }));
  app.get("/readyz", { schema: operations.getReadiness }, async (_request, reply) => {
    const reason = readiness.unready();
    if (reason !== undefined) return sendRefusal(reply, refusal("unavailable", { message: reason }));
    const vaults = readiness.vaultSafety();
    const store = readiness.hasStore() ? "connected" : "lost";
    return { status: "ready", store, ...(vaults && { vaults }) };
  });
}

interface MetricsParts extends Pick<HttpDeps, "authenticator" | "metrics"> {
  /** Whether who comes with this Host header needs no key. */
  isOpen(host: string | undefined): boolean;
  readonly noteFailedLogin: NoteFailedLogin;
}

const notOfAll = refusal("insufficient_scope", {
  message: "Metrics are for API keys of the whole organization that have no policy, and for its admins",
});
/** Metrics tell of every project. */
const isOfAll = (principal: Principal): boolean =>
  !isClosedTo(principal, operationRules.getMetrics) && principal.credentialScope === null;

/**
 * A scrape is no request of the API: whatever is left of a rate, and with the root key while Redis is away,
 * it is answered, since it is to tell of just that.
 */
export function addMetrics(
  app: App,
  { authenticator, metrics, isOpen, noteFailedLogin }: MetricsParts,
): void {
  app.get("/metrics", { schema: operations.getMetrics }, async (request, reply) => {
    const { headers } = request;
    if (!isOpen(headers.host)) {
      const { authorization } = headers;
      const got = await authenticator.admit({ authorization, project: undefined, isUncounted: true });
      if (got.kind === "refused") return sendRefusal(reply, noteFailedLogin(request, got) ?? got);
      if (!isOfAll(got.principal)) return sendRefusal(reply, notOfAll);
    }
    return reply.type(metrics.contentType).send(await metrics.text());
  });
}

const contextOf = (principal: Principal): AuthContextReply => ({
  authentication: {
    method: principal.method,
    source: principal.source,
    credential_id: principal.credentialId,
  },
  principal: { type: principal.type, id: principal.id },
  organization: { id: "default" },
  authorization: {
    credential_scope: { project_id: principal.credentialScope },
    effective_scope: { project_id: principal.effectiveScope },
  },
});

export function addAuth(app: App): void {
  app.get("/auth/context", { schema: operations.getAuthContext }, async (request) =>
    contextOf(principalOf(request)),
  );
}
