import { afterEach, beforeEach } from "vitest";
import { type Clock, systemClock } from "../../../src/base/clock.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { newOtlpDestinationId, type OtlpDestinationId } from "../../../src/base/ids.js";
import { patternsOf } from "../../../src/base/net/hosts.js";
import { closedCollectorCode, makeCollectorAgent } from "../../../src/egress/collectors.js";
import { makeResolve } from "../../../src/egress/resolve.js";
import type { Collector } from "../../../src/telemetry/export/collectors.js";
import type { Compression } from "../../../src/telemetry/export/delivery.js";
import type { ExportLimits } from "../../../src/telemetry/export/destination-queue.js";
import { Exporters } from "../../../src/telemetry/export/exporters.js";
import { type Dns, startDns } from "../egress/dns-server.js";
import { makeLogBook } from "../http/http-server.js";
import { OtlpReceiver } from "./otlp-receiver.js";

export const secret = "Bearer secret-of-this-suite";
export const about = {
  session: "s1",
  lease: "l1",
  project: "default",
  pool: { id: "p1", name: "herd" },
  region: "us-east",
  node: "n1",
};
const usual: ExportLimits = {
  delayMs: 10,
  limitMs: 8000,
  batchEvents: 100,
  batchBytes: 64 * 1024,
  queueBytes: 256 * 1024,
  totalQueueBytes: 2 ** 20,
};

interface Given {
  readonly limits?: Partial<ExportLimits>;
  readonly endpoint?: string;
  readonly privates?: readonly string[];
  readonly clock?: Clock;
  readonly compression?: Compression;
}
/** Exporters, and a collector and a resolver for them. */
class ExportBed {
  receiver = new OtlpReceiver();
  #dns: Dns | undefined;
  #opened: Exporters[] = [];

  async start(): Promise<void> {
    [this.receiver, this.#dns] = await Promise.all([new OtlpReceiver().start(), startDns()]);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#opened.map((exporters) => exporters.close()));
    this.#opened = [];
    await Promise.all([this.receiver.close(), this.#dns?.close()]);
  }

  get dns(): Dns {
    if (!this.#dns) throw new Error("the bed is not started");
    return this.#dns;
  }

  open({ limits, endpoint = this.receiver.url, clock = systemClock, ...given }: Given = {}) {
    const { privates = ["127.0.0.1"], compression = "gzip" } = given;
    const id = newOtlpDestinationId();
    const collectors = new Map<OtlpDestinationId, Collector | "away">();
    collectors.set(id, { endpoint, headers: { Authorization: new Secret(secret) }, revision: 1 });
    const counts: Record<string, number> = {};
    const count = (what: string, by: number): void => void (counts[what] = (counts[what] ?? 0) + by);
    const notes: (string | undefined)[] = [];
    const { log, lines } = makeLogBook();
    const agentParts = {
      clock,
      connectMs: 5000,
      resolve: makeResolve({ clock, limitMs: 5000, servers: [this.dns.server] }),
      reserved: { isOwn: () => false },
      privates: patternsOf(privates),
    };
    const exporters = new Exporters({
      clock,
      log,
      meter: { exported: (n) => count("exported", n), exportLost: (why, n) => count(why, n) },
      limits: { ...usual, ...limits },
      compression,
      collectors: {
        open: async (asked) => {
          const found = collectors.get(asked);
          if (found === "away") throw new Error("the store is away");
          return found;
        },
        noteDelivery: async (_, error) => void notes.push(error),
        agentFor: (protocol) => makeCollectorAgent(agentParts, protocol),
        isClosed: (error) => (error as { code?: string }).code === closedCollectorCode,
      },
    });
    this.#opened.push(exporters);
    return { id, exporters, collectors, counts, notes, lines };
  }
}

/** A new one for each test of a file. */
export function sharedExportBed(): ExportBed {
  const bed = new ExportBed();
  beforeEach(() => bed.start());
  afterEach(() => bed.stop());
  return bed;
}

let last = 0;
export const event = (over: object = {}): string => {
  last += 1;
  return JSON.stringify({
    ts: 1_700_000_000_123_456,
    type: "cdp_command",
    category: "control",
    source: { kind: "kernel_api" },
    data: { method: "Page.navigate", number: last },
    truncated: false,
    ...over,
  });
};
