import { Type } from "typebox";
import { bytes, count, hours, seconds } from "../kinds.js";
import { telemetryExportSection } from "./telemetry-export.js";

export const telemetrySection = Type.Object({
  max_session_bytes: bytes("of one lease's events; beyond it the oldest go", [2 ** 16, 2 ** 32])(
    16 * 2 ** 20,
  ),
  max_age_hours: hours("an event is kept for, also while its lease lasts", [1, 24 * 366])(24 * 30),
  retention_hours: hours("a lease's events are kept for after the last of them", [1, 24 * 366])(24 * 30),
  max_total_bytes: bytes("of all events in Redis; beyond it those of the leases that began first go", [
    2 ** 20,
    2 ** 40,
  ])(512 * 2 ** 20),
  sweep_period_seconds: seconds("what is beyond max_total_bytes is looked for every", [1, 3600])(60),
  max_event_bytes: bytes("of one event's JSON; longer texts in it are cut", [2 ** 11, 2 ** 20])(64 * 2 ** 10),
  max_screenshot_bytes: bytes("of the JSON of one event with a screenshot", [2 ** 11, 2 ** 24])(3 * 2 ** 19),
  max_queued_bytes: bytes("of one lease's events that wait to be stored; more are lost", [2 ** 16, 2 ** 30])(
    4 * 2 ** 20,
  ),
  max_total_queued_bytes: bytes("of all leases' events that wait at one daemon", [2 ** 20, 2 ** 34])(
    64 * 2 ** 20,
  ),
  max_session_streams: count("that are open of one session at one daemon", "streams", [1, 1000])(10),
  max_streams: count("that are open at one daemon", "streams", [1, 100_000])(500),
  export: telemetryExportSection,
});
