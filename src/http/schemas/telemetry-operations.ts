import { noContent, onePage, type Operation, reply } from "./operation.js";

const telemetry = "Telemetry";

/** What happens in browsers: how it is read, and where it is exported to. */
export const telemetryOperations = {
  streamBrowserTelemetry: {
    tag: telemetry,
    summary: "Follow what happens in a session, as server-sent events; it ends with the session",
    success: [
      {
        status: 200,
        description:
          "`id` is the event's `seq`, `data` its TelemetryEnvelope; comments keep the connection alive",
        contentType: "text/event-stream",
      },
    ],
    failures: ["browser_not_found", "lease_superseded", "too_many_requests"],
  },
  listBrowserTelemetryEvents: {
    tag: telemetry,
    summary: "Read what has happened in a session, also when it is over",
    success: onePage("TelemetryEnvelope"),
    failures: ["browser_not_found", "lease_superseded", "too_many_requests"],
  },
  reportCaptchaSolveResult: {
    tag: telemetry,
    summary: "Tell among a session's events what came of a captcha that a solver outside was given",
    takesBody: true,
    success: noContent("It is told where the session captures `captcha`, and else dropped"),
    failures: ["browser_not_found", "lease_superseded"],
  },
  listTelemetryDestinations: {
    tag: telemetry,
    summary: "List the collectors that telemetry can be exported to, newest first",
    success: onePage("OtlpDestination"),
  },
  createTelemetryDestination: {
    tag: telemetry,
    summary: "Register a collector of OTLP over HTTP that sessions and pools can export to",
    takesBody: true,
    success: reply(201, "OtlpDestination", "The new destination"),
    failures: ["audit_unavailable", "limit_exceeded", "name_taken"],
  },
  getTelemetryDestination: {
    tag: telemetry,
    summary: "Read an OTLP destination, and how its deliveries stand",
    success: reply(200, "OtlpDestination", "The destination"),
    failures: ["otlp_destination_not_found"],
  },
  updateTelemetryDestination: {
    tag: telemetry,
    summary: "Change an OTLP destination; sessions that export to it go on with what it is now",
    takesBody: true,
    success: reply(200, "OtlpDestination", "The destination as it is now"),
    failures: [
      "audit_unavailable",
      "conflict",
      "name_taken",
      "otlp_destination_not_found",
      "secret_unreadable",
    ],
  },
  deleteTelemetryDestination: {
    tag: telemetry,
    summary: "Delete an OTLP destination that nothing exports to",
    takesBody: true,
    success: noContent("It is deleted"),
    failures: ["audit_unavailable", "otlp_destination_in_use", "otlp_destination_not_found"],
  },
} as const satisfies Record<string, Operation>;
