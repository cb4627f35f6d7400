import { refusal } from "../../base/errors.js";
import { makeKeyCheck } from "../../base/crypto/key-check.js";
import type { Readiness } from "../../pool/operations.js";
import type { App } from "../app.js";
import type { HttpDeps } from "../deps.js";
import { sendRefusal } from "../errors.js";
import { operations } from "../schemas/operations.js";

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
