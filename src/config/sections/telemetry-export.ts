import { Type } from "typebox";
import { bytes, count, millis, oneOf, seconds, texts } from "../kinds.js";

export const telemetryExportSection = Type.Object({
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
