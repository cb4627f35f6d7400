import { Type } from "typebox";
import {
  bytes,
  count,
  hours,
  minutes,
  seconds,
  secretOr,
  switched,
  text,
  textOr,
  httpOrigin,
  httpUrl,
} from "../kinds.js";

export const archivesSection = Type.Object({
  directory: textOr(
    "where archives of extensions and profiles are kept; shared by all daemons of a deployment and by no other",
  )("archives in the data directory"),
  s3_bucket: textOr("keeps archives in this bucket of an S3-compatible store instead")("none: the directory"),
  s3_endpoint: textOr("address of the S3-compatible store")("Amazon's", httpOrigin),
  s3_region: text("region of the bucket")("us-east-1"),
  s3_prefix: textOr(
    "put before every archive's name in the bucket; deployments that share one need each their own",
  )("nothing"),
  s3_access_key_id: secretOr("who signs requests to the store")("found as Amazon's own tools find it", {
    env: "REMUDA_S3_ACCESS_KEY_ID",
  }),
  s3_secret_access_key: secretOr("its key")("found as Amazon's own tools find it", {
    env: "REMUDA_S3_SECRET_ACCESS_KEY",
  }),
  s3_path_style: switched("names the bucket in the path of a URL instead of its host")(false),
  s3_limit_seconds: seconds(
    "a request to the store has to be answered within; a transfer in which nothing moves is given up after",
    [1, 600],
  )(30),
  cache_bytes: bytes(
    "a node keeps archives it has fetched up to this size in all; least recently used ones go",
  )(2 * 2 ** 30),
  unused_hours: hours("an archive that nothing names is deleted after")(1),
  sweep_period_minutes: minutes("archives that nothing names are looked for every")(10),
});

export const extensionsSection = Type.Object({
  max_bytes: bytes("largest archive of an extension", [1024, 2 ** 30])(50 * 2 ** 20),
  max_unpacked_bytes: bytes("an extension may unpack to", [1024, 2 ** 32])(200 * 2 ** 20),
  max_files: count("files of one extension", "files", [1, 1_000_000])(10_000),
  upload_stall_seconds: seconds("an upload that sends nothing is given up after", [1, 600])(20),
  upload_limit_seconds: seconds("an upload has to be there whole within", [1, 3600])(300),
  load_limit_seconds: seconds("Chromium has to load an extension within", [1, 120])(30),
  store_url: text("Chrome Web Store's address for archives of extensions")(
    "https://clients2.google.com/service/update2/crx",
    httpUrl,
  ),
  store_limit_seconds: seconds("a download from the web store takes at most", [1, 55])(30),
});

export const profilesSection = Type.Object({
  max_bytes: bytes("a profile may have, unpacked; one that has more is not saved", [2 ** 20, 2 ** 40])(
    2 * 2 ** 30,
  ),
  max_files: count("files of one profile; one that has more is not saved", "files", [1, 10_000_000])(100_000),
  save_limit_seconds: seconds("a save takes at most, Chromium's own end included", [1, 100])(60),
  save_wait_seconds: seconds("the end of a session waits for its save at most", [0, 55])(30),
});
