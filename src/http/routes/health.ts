import { refusal } from "../../base/errors.js";
import type { Readiness } from "../../pool/operations.js";
import type { App } from "../app.js";
import type { MetricsPage } from "../deps.js";
import { refuse } from "../errors.js";
import { operations } from "../schemas/operations.js";

/** Open to all: probes carry no key. */
export function addHealth(app: App, { readiness }: { readiness: Readiness }): void {
  app.get("/healthz", { schema: operations.getHealth }, async () => ({ status: "ok" }));
  app.get("/readyz", { schema: operations.getReadiness }, async (_request, reply) => {
    const reason = readiness.unready();
    return reason === undefined ? { status: "ready" } : refuse(reply, refusal("unavailable", { message: reason }));
  });
}

export function addMetrics(app: App, metrics: MetricsPage): void {
  app.get("/metrics", { schema: operations.getMetrics }, async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.text()));
}
