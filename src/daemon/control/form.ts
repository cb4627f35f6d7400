import { type AuditRecorder, noRecorder } from "../../audit/writer.js";
import type { Stops } from "../../base/stops.js";
import type { Config } from "../../config/config.js";
import type { FormOptions } from "../../form/app.js";
import { listenForForms } from "../../form/server.js";
import type { DaemonParts } from "../parts.js";
import { openCollectionForms } from "../vaults.js";

/**
 * Listens for people who open the links of collection forms, where the configuration says how they reach it.
 */
export async function listenForPeople(
  shared: DaemonParts,
  audit: AuditRecorder | undefined,
  stops: Stops,
): Promise<void> {
  const { config, clock, log, endpoints } = shared;
  const { form } = config.vault;
  if (form.publicUrl === null) return;
  const server = await listenForForms(formOptions(config), {
    forms: openCollectionForms(shared),
    audit: audit ?? noRecorder,
    clock,
    log,
  });
  stops.add("collection form", () => server.close());
  await endpoints.add({ host: form.host, port: server.port });
  log.info({ host: form.host, port: server.port, url: form.publicUrl }, "collection form listening");
}

const formOptions = ({ vault: { form }, server }: Config): FormOptions => ({
  host: form.host,
  port: form.port,
  publicUrl: form.publicUrl,
  trustedProxies: server.trustedProxies,
  attemptsPerMinute: form.attemptsPerMinute,
  requestTimeoutMs: server.requestTimeoutMs,
  keepAliveTimeoutMs: server.keepAliveMs,
  maxConnections: server.maxConnections,
  closeLimitMs: server.closeLimitMs,
});
