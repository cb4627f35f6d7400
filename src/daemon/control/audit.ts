import { makeAuditReader } from "../../audit/read-page.js";
import { makeSeal } from "../../audit/seal.js";
import { SegmentFiles } from "../../audit/segment-files.js";
import { UnknownCallers } from "../../audit/unknown-callers.js";
import { AuditWriter } from "../../audit/writer.js";
import { newRequestId } from "../../base/ids.js";
import type { Stops } from "../../base/stops.js";
import type { HttpDeps } from "../../http/deps.js";
import type { Tick } from "../../schedule/ticks.js";
import type { DaemonParts } from "../parts.js";
import { openExports } from "./exports.js";

interface ControlAudit {
  readonly operations: Pick<HttpDeps, "audit" | "auditLog" | "destinations">;
  readonly seal: Tick;
  /** Begins to deliver. */
  startExports(stops: Stops): Promise<Tick>;
}

/** The audit log as a control has it. Opened before the server, so that it stops after the last request. */
export function openAudit(shared: DaemonParts, stops: Stops): ControlAudit {
  const { config, clock, log, metrics, stores, archives } = shared;
  const { audit: store } = stores;
  const { audit: meter } = metrics;
  if (!config.audit.enabled) log.warn({ enabled: false }, "audit log is off: requests leave no entries");
  const writer = new AuditWriter({ store, clock, log, meter, id: newRequestId() });
  const { unknownEntries: mostOfAll, unknownEntriesOfAddress: mostOfEach } = config.audit;
  const recorder = new UnknownCallers({ recorder: writer, clock, meter, mostOfEach, mostOfAll });
  stops.add("audit log", () => {
    recorder.flush();
    return writer.close();
  });
  const files = new SegmentFiles({ ...archives, clock });
  const {
    hotMs,
    hotBytes: sealBytes,
    segmentEntries,
    retentionMs: keepMs,
    sealPeriodMs: periodMs,
  } = config.audit;
  const exports = openExports(shared, { store, files });
  const sealing = { store, files, hotMs, sealBytes, segmentEntries, keepMs, log };
  return {
    operations: {
      audit: config.audit.enabled ? recorder : undefined,
      auditLog: makeAuditReader({ store, files, clock }),
      destinations: exports.operations,
    },
    startExports: exports.start,
    seal: { name: "audit", periodMs, freesMemory: true, run: makeSeal(sealing) },
  };
}
