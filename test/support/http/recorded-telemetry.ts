import type { FlightRecording } from "../../../src/spec/flight-recording.js";
import { done } from "../../../src/base/errors.js";
import type { OtlpDestinationId } from "../../../src/base/ids.js";
import type { EventOperations } from "../../../src/telemetry/read-events.js";
import type {
  OtlpDestination,
  OtlpDestinationOperations,
} from "../../../src/registry/destinations/destination.js";

const otlpDestination: OtlpDestination = {
  id: "otlpotlpotlpotlpotlp0001" as OtlpDestinationId,
  name: "collector",
  endpoint: "https://otlp.example/otlp",
  headerNames: ["Authorization"],
  revision: 1,
  createdAt: 1_700_000_000_000,
  updatedAt: 1_700_000_001_000,
  health: { failures: 0 },
};

const event = { ts: 1, type: "cdp_connect", category: "connection" };
const stored = { seq: 1, text: JSON.stringify(event) };

export const recordedEvents = (run: Run): EventOperations => ({
  history: (...args) => run("events.history", args, done({ events: [stored], next: 1, hasMore: false })),
  stream: (...args) =>
    run(
      "events.stream",
      args,
      done(
        (async function* () {
          yield [];
          yield [stored];
        })(),
      ),
    ),
});

type Run = <Result>(operation: string, args: readonly unknown[], usual: Result) => Promise<Result>;

export const recordedOtlpDestinations = (run: Run): OtlpDestinationOperations => ({
  create: (...args) => run("otlpDestinations.create", args, done(otlpDestination)),
  list: (...args) =>
    run("otlpDestinations.list", args, { items: [otlpDestination], hasMore: false, nextOffset: 1 }),
  get: (...args) => run("otlpDestinations.get", args, done(otlpDestination)),
  update: (...args) => run("otlpDestinations.update", args, done(otlpDestination)),
  remove: (...args) => run("otlpDestinations.remove", args, done(null)),
});

const at = "2026-03-04T05:06:07.890Z";
export const recording: FlightRecording = {
  session_id: "poolpoolpoolbrowser00001",
  recorded_at: at,
  reason: "crashed",
  exit: { signal: "SIGKILL" },
  states: [{ at, state: "launched" }],
  commands: { count: 1, last: [{ at, method: "Page.enable" }] },
  failed_requests: [{ at, host: "a.example", reason: "denied", count: 2 }],
  console_errors: [],
  memory: { limit_bytes: 1, samples: [{ at, bytes: 1 }] },
};
