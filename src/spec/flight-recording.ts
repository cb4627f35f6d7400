import { type Static, Type } from "typebox";
import { parserOf } from "../base/parser.js";

const Instant = Type.String({ format: "date-time" });
const Count = Type.Integer({ minimum: 0 });

/** Why a recording was written out. */
export const recordingReasons = ["requested", "crashed", "memory_exceeded", "launch_failed"] as const;

/**
 * The last of what happened in a browser (docs/telemetry.md#flight-recorder). It stands here because the API,
 * the browser's node and the store all read it.
 */
export const FlightRecording = Type.Object(
  {
    session_id: Type.String(),
    recorded_at: Instant,
    reason: Type.Enum([...recordingReasons]),
    error: Type.Optional(
      Type.String({ description: "Why a launch failed, with the last lines that Chromium wrote" }),
    ),
    exit: Type.Optional(
      Type.Object(
        { code: Type.Optional(Type.Integer()), signal: Type.Optional(Type.String()) },
        { description: "How Chromium ended, where it has" },
      ),
    ),
    states: Type.Array(Type.Object({ at: Instant, state: Type.String() }), {
      description: "What became of the browser since its launch, oldest first, as all lists here",
    }),
    commands: Type.Object(
      { count: Count, last: Type.Array(Type.Object({ at: Instant, method: Type.String() })) },
      { description: "CDP commands of the present holder's clients that went to Chromium" },
    ),
    failed_requests: Type.Array(
      Type.Object({ at: Instant, host: Type.String(), reason: Type.String(), count: Count }),
      { description: "What its way out denied or could not reach; `at` is the first of `count` alike" },
    ),
    console_errors: Type.Array(Type.Object({ at: Instant, host: Type.String(), count: Count }), {
      description: "Only while telemetry captures the category `console`",
    }),
    memory: Type.Object({
      limit_bytes: Count,
      peak_bytes: Type.Optional(Count),
      out_of_memory_kills: Type.Optional(
        Type.Integer({ minimum: 0, description: "Processes of the browser that the kernel ended" }),
      ),
      samples: Type.Array(Type.Object({ at: Instant, bytes: Count })),
    }),
  },
  { $id: "FlightRecording" },
);
export type FlightRecording = Static<typeof FlightRecording>;
export type RecordingReason = FlightRecording["reason"];

/** As it is stored: `lease` is the holder whose commands it tells; absent where nobody held the browser. */
const StoredRecording = Type.Object({ lease: Type.Optional(Type.String()), recording: FlightRecording });
export type StoredRecording = Static<typeof StoredRecording>;

export const flightRecordingParser = parserOf("a flight recording", FlightRecording);
export const storedRecordingParser = parserOf("a stored flight recording", StoredRecording);
