import { Type } from "typebox";
import { bytes, count, hours, httpOrigin, seconds, switched, textOr } from "../kinds.js";

const exportSection = Type.Object({
  assume_role: switched(
    "whether the roles of destinations are assumed; where not, the credentials of archives.s3_* put the objects",
  )(true),
  service_role_arn: textOr("the role as which this deployment assumes the roles of destinations")(
    "destinations are refused, unless assume_role is false",
    { pattern: "^arn:aws:iam::\\d{12}:role/\\S+$", form: "arn:aws:iam::123456789012:role/name" },
  ),
  s3_endpoint: textOr("address of the S3-compatible store that destinations are in")(
    "Amazon's; where assume_role is false, archives.s3_endpoint",
    httpOrigin,
  ),
  sts_endpoint: textOr("address of the service that hands out roles")("Amazon's", httpOrigin),
  max_destinations: count("export destinations that there may be", "destinations", [1, 100])(20),
  hold_seconds: seconds("a window of the log is delivered so long after its end", [1, 3600])(600),
  window_seconds: seconds("of the log stand in one object at most; has to divide an hour", [1, 3600])(300),
  period_seconds: seconds("what is to be delivered is looked for every", [1, 600])(10),
  limit_seconds: seconds("a request to a destination has to be answered within", [1, 120])(30),
});

export const auditSection = Type.Object({
  enabled: switched(
    "whether what is asked of this daemon leaves entries in the audit log; where not, nobody can say afterwards who has done what",
  )(true),
  hot_hours: hours("entries stay in Redis for; older ones are sealed into the archives", [1, 24 * 7])(2),
  hot_bytes: bytes("of entries in Redis beyond which the oldest are sealed early", [2 ** 12, 2 ** 36])(
    256 * 2 ** 20,
  ),
  max_bytes: bytes("of entries in Redis beyond which no more are taken", [2 ** 12, 2 ** 37])(512 * 2 ** 20),
  unknown_entries_of_address: count(
    "that requests of one address which are not let in leave in a minute at each control; more have one together",
    "entries",
    [1, 1_000_000],
  )(100),
  unknown_entries: count(
    "that all requests which are not let in leave in a minute at each control; more have one for each address",
    "entries",
    [1, 1_000_000],
  )(1000),
  segment_entries: count("that are sealed together at most", "entries", [10, 200_000])(50_000),
  seal_period_seconds: seconds("what is to be sealed is looked for every", [1, 3600])(10),
  retention_hours: hours("entries are kept for", [1, 24 * 366 * 20])(24 * 365),
  export: exportSection,
});
