import { Type } from "typebox";
import { bytes, count, hours, seconds } from "../kinds.js";

export const auditSection = Type.Object({
  hot_hours: hours("entries stay in Redis for; older ones are sealed into the archives", [1, 24 * 7])(2),
  hot_bytes: bytes("of entries in Redis beyond which the oldest are sealed early", [2 ** 12, 2 ** 36])(
    256 * 2 ** 20,
  ),
  max_bytes: bytes("of entries in Redis beyond which no more are taken", [2 ** 12, 2 ** 37])(512 * 2 ** 20),
  segment_entries: count("that are sealed together at most", "entries", [10, 200_000])(50_000),
  seal_period_seconds: seconds("what is to be sealed is looked for every", [1, 3600])(10),
  retention_hours: hours("entries are kept for", [1, 24 * 366 * 20])(24 * 365),
});
