import { type Static, Type } from "typebox";
import { Telemetry, telemetryCategories } from "../../spec/bodies.js";

/** A configuration as it is shown: an export's destination by its id. */
export const TelemetryReply = Type.Object({
  ...Telemetry.properties,
  export: Type.Optional(
    Type.Object({
      otlp: Type.Optional(
        Type.Object({
          enabled: Type.Optional(Type.Boolean()),
          destination: Type.Optional(Type.String({ description: "Its id" })),
        }),
      ),
    }),
  ),
});
export type TelemetryReply = Static<typeof TelemetryReply>;

const Instant = Type.String({ format: "date-time" });

/** An event and its place in its stream, as docs/telemetry.md#events has them. */
export const TelemetryEnvelope = Type.Object(
  {
    seq: Type.Integer({
      minimum: 1,
      description: "Counts the events of the session's present holder from 1",
    }),
    event: Type.Object({
      ts: Type.Integer({ description: "Microseconds since 1970" }),
      type: Type.String(),
      category: Type.Enum([...telemetryCategories, "monitor"]),
      source: Type.Object({
        kind: Type.Enum(["cdp", "kernel_api", "extension", "local_process"]),
        event: Type.Optional(Type.String()),
        metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
      }),
      data: Type.Record(Type.String(), Type.Unknown()),
      truncated: Type.Boolean({ description: "True where texts of `data` were cut" }),
    }),
  },
  { $id: "TelemetryEnvelope" },
);

/** A destination as docs/telemetry.md#destinations has it. */
export const OtlpDestinationReply = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    endpoint: Type.String(),
    headers: Type.Record(Type.String(), Type.String(), {
      description: "Their names, in the usual spelling; every value is empty",
    }),
    description: Type.Optional(Type.String()),
    created_at: Instant,
    updated_at: Instant,
    consecutive_failures: Type.Integer({
      minimum: 0,
      description: "Deliveries that have failed since the last that did not",
    }),
    last_export_at: Type.Optional(Instant),
    last_error: Type.Optional(
      Type.String({ description: "Why the last delivery failed that did; it may have been long ago" }),
    ),
    last_error_at: Type.Optional(Instant),
  },
  { $id: "OtlpDestination" },
);
export type OtlpDestinationReply = Static<typeof OtlpDestinationReply>;
