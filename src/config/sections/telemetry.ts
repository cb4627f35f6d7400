import { Type } from "typebox";
import { bytes, count, hours, millis, oneOf, seconds, texts } from "../kinds.js";

const telemetryExportSection = Type.Object({
  private_hosts: texts(
    "private collectors that destinations may be; none other is sent anything",
    "a list of host names, addresses or ranges",
  )([]),
  max_destinations: count("OTLP destinations that a project may have", "destinations", [1, 1000])(100),
  delay_ms: millis("events are collected for so long before they are sent", [10, 60_000])(1000),
  limit_seconds: seconds(
    "a request has to be answered within, its repeats included; then it is given up",
    [1, 120],
  )(30),
  compression: oneOf(
    "how a request is packed; none: for a collector that unpacks nothing, though OTLP demands it",
    ["gzip", "none"],
  )("gzip"),
  batch_events: count("in one request at most", "events", [1, 10_000])(512),
  batch_bytes: bytes("of events in one request at most, before they are packed", [2 ** 16, 2 ** 26])(2 ** 20),
  queue_bytes: bytes("of events that wait for one destination at one node; more are lost", [
    2 ** 16,
    2 ** 32,
  ])(8 * 2 ** 20),
  total_queue_bytes: bytes(
    "of events that wait for all destinations at one node; more are lost, but for 64 KiB of each destination",
    [2 ** 16, 2 ** 34],
  )(64 * 2 ** 20),
});

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
