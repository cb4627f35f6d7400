import { type Static, Type } from "typebox";
import { engines, regions, rungNames } from "../spec/bodies.js";
import {
  bytes,
  bytesOr,
  count,
  countOr,
  hours,
  millis,
  millisOr,
  minutes,
  minutesOr,
  oneOf,
  ratio,
  seconds,
  secondsOr,
  secretOr,
  switched,
  text,
  textOr,
  texts,
  textsOr,
} from "./kinds.js";

export const roleNames = ["all", "control", "node"] as const;
export const logFormats = ["auto", "json", "text"] as const;
export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;

const httpUrl = { pattern: "^https?://[^/?#@\\s]+$", form: "http(s)://host[:port] without a path" } as const;
const redisUrl = {
  pattern: "^(rediss?://|/)\\S+$|^rediss?\\+sentinel://[^/\\s]+/[^/?#\\s]+$",
  form: "redis://…, rediss://…, redis+sentinel://host:port,host:port/name or the path of a unix socket",
} as const;
const nodeName = { pattern: "^[0-9a-z-]{1,63}$", form: "1 to 63 of a-z, 0-9 and -" } as const;
const key = { pattern: "^[!-~]{16,}$", form: "at least 16 printable characters without spaces" } as const;

const server = Type.Object({
  host: text("address to listen on")("127.0.0.1", { env: "REMUDA_HOST" }),
  port: count("port to listen on; 0 takes a free one", "port", [0, 65_535])(4700, { env: "REMUDA_PORT" }),
  public_url: textOr("where clients reach this daemon; part of every URL handed out")(
    "http://<host>:<port>",
    { env: "REMUDA_PUBLIC_URL", ...httpUrl },
  ),
  request_timeout_seconds: seconds("a request has to arrive whole within")(30),
  keep_alive_seconds: seconds("an idle connection is kept; longer than load balancers do")(72),
  body_limit_bytes: bytes("largest JSON body; a browser policy alone may have 5 MiB")(8 * 2 ** 20),
  max_connections: count("connections held at once", "connections")(20_000),
  close_limit_seconds: seconds("requests in flight at the stop may still take", [1, 600])(5),
});

const redis = Type.Object({
  url: secretOr("Redis to use")("a private Redis in the data directory", { env: "REDIS_URL", ...redisUrl }),
  sentinel_password: secretOr("password of the sentinels that redis+sentinel:// names")("none", {
    env: "REDIS_SENTINEL_PASSWORD",
  }),
  cluster: switched("the URL names one node of a Redis Cluster")(false),
  executable: text("redis-server of the private Redis: a path, or a name on the path")("redis-server"),
  command_timeout_ms: millis(
    "a command is given up after, and a connection that answered nothing for so long is made anew",
    [100, 60_000],
  )(2000),
  connect_timeout_ms: millis("a connection attempt is given up after")(5000),
  start_limit_seconds: seconds("the private Redis has to answer within, its file read")(60),
  stop_limit_seconds: seconds("the private Redis is killed when it takes longer to stop", [1, 600])(10),
});

const node = Type.Object({
  id: textOr("this node's name")("drawn once, kept in the data directory", nodeName),
  address: textOr("where other daemons reach this node's gateway")("http://<host>:<port>", httpUrl),
  hand_out_own_address: switched("URLs of browsers name the node's own address instead of the public URL")(
    false,
  ),
  max_browsers: countOr("browsers at once", "browsers")("as many as memory admits"),
  overcommit: ratio("memory classes admitted, as a multiple of memory", [0.1, 64])(4),
  memory_bytes: bytesOr("memory for browsers")("the machine's, or this container's limit"),
  parallel_launches: countOr("launches at once", "launches", [1, 256])("number of cores"),
  launch_pickup_seconds: seconds("a launch whose job its node has not taken up is claimed anew after")(10),
  launch_limit_seconds: seconds("a launch has failed after")(30),
  reset_limit_seconds: seconds("a reset that takes longer retires the browser")(10),
  probe_period_seconds: seconds("an idle browser is probed every")(15),
  probe_limit_seconds: seconds("a probe without an answer retires the browser after")(5),
  expire_period_seconds: seconds("inactive leases are ended every; a lease ends at most this late")(5),
  beat_period_ms: millis("the node says that it is alive every", [50, 60_000])(1000),
  isolated_limit_seconds: seconds(
    "a node that could not ask Redis for so long ends its browsers",
    [10, 86_400],
  )(120),
  lost_after_ms: millis("a node without a beat is lost after", [200, 600_000])(15_000),
  scratch_dir: textOr("directories of browsers; has to be passable for their uids")(
    "a directory of this data directory's own in the temporary directory",
  ),
  uid_base: count(
    "the first uid given to browsers, where the daemon is root",
    "uid",
    [1000, 4_000_000_000],
  )(200_000),
  cgroups: switched(
    "a cgroup for each browser, where one may be made, bounds its memory and tasks and shares processors out; false: they are watched",
  )(true),
  scratch_mounts: switched(
    "a file system in memory for each browser, where root may mount one, bounds what it stores; false: its files are counted",
  )(true),
  memory_watch_period_ms: millis(
    "memory of browsers is looked at every, where no cgroup bounds it, and the scratch directory's fullness",
    [100, 60_000],
  )(1000),
  storage_watch_period_seconds: seconds(
    "files of browsers are counted every, where no file system of their own bounds them",
    [1, 3600],
  )(10),
  max_scratch_percent: count(
    "above so full a scratch directory the browser that stores most is retired",
    "%",
    [10, 100],
  )(90),
  require_isolation: oneOf(
    "the weakest wall around a browser on which browsers are launched, see docs/isolation.md",
    rungNames,
  )("shared-proc"),
});

const browser = Type.Object({
  executable: textOr("Chromium's executable")("found in the usual places", { env: "REMUDA_CHROMIUM" }),
  headless_shell: textOr("chromium-headless-shell's executable")("found in the usual places"),
  readable_paths: texts(
    "further paths of the machine that browsers may read, such as those of an engine of one's own",
    "a list of absolute paths",
  )([]),
  engine: oneOf("engine of pools and sessions that name none", engines)("chromium"),
  max_tasks: count(
    "processes and threads of one browser; ten pages have about 220",
    "tasks",
    [100, 100_000],
  )(1024),
  max_cpu_percent: countOr(
    "processor time of one browser that is launched, in percent of one core",
    "%",
    [10, 100_000],
  )("whatever is free"),
  busy_cpu_percent: countOr(
    "a browser that uses more for some 200 ms stands behind the daemon and the other browsers, until it uses half of that; in percent of one core",
    "%",
    [1, 100_000],
  )("none stands behind", 25),
  max_open_files: count("open files of one process of a browser", "files", [1024, 1_000_000])(4096),
  max_scratch_bytes: bytes(
    "one browser may store, its profile and downloads included; one that has more is retired",
    [2 ** 26, 2 ** 40],
  )(3 * 2 ** 30),
  max_scratch_files: count(
    "files of one browser, its profile and downloads included",
    "files",
    [5000, 100_000_000],
  )(300_000),
});

const fill = Type.Object({
  default_rate_per_minute: count(
    "fill rate of pools that name none",
    "% of size per minute",
    [0, 60_000],
  )(25),
  max_rate_per_minute: countOr(
    "highest fill rate a pool may ask for",
    "% of size per minute",
    [0, 60_000],
  )("no maximum"),
  backoff_initial_ms: millis("pause after a failed launch, doubled with each further one")(1000),
  backoff_max_ms: millis("longest such pause")(60_000),
  early_death_seconds: seconds(
    "a browser that dies within this time of its first idle counts as a failed launch",
    [0, 3600],
  )(60),
});

const acquire = Type.Object({
  max_wait_seconds: seconds("one request waits at most; official clients give up at 60", [0, 3600])(50),
  max_waiters: count("callers waiting on one pool", "callers", [0, 1_000_000])(1000),
  provisional_seconds: seconds("an unconfirmed grant of a lost control returns after")(30),
  keyed_grace_seconds: seconds(
    "a waiter or lease with an idempotency key is kept for its retry",
    [0, 600],
  )(10),
  idempotency_minutes: minutes("an idempotency key is remembered")(10),
  retry_window_seconds: seconds(
    "a repeated release that names no lease ends nothing within, after the lease's end",
    [0, 3600],
  )(120),
  control_beat_period_ms: millis("a control says that it is alive every", [50, 60_000])(1000),
  control_lost_after_ms: millis("a control without a beat is lost after", [200, 600_000])(5000),
});

const recycle = Type.Object({
  max_age_minutes: minutesOr("an idle browser older than this is replaced")("never", 1440),
  jitter_ratio: ratio(
    "part of the age by which it varies, so that a pool is not replaced at once",
    [0, 0.9],
  )(0.1),
  max_leases: countOr("a browser that has served so many leases is replaced", "leases")("never"),
});

const drain = Type.Object({
  limit_seconds: secondsOr("leases may still take at the stop of a node")("0 in role all, 600 in role node"),
});

const gateway = Type.Object({
  ping_seconds: seconds("clients are pinged every; two unanswered disconnect", [1, 3600])(20),
  max_clients: count("clients of one browser at once; further ones get 429", "clients", [1, 10_000])(32),
  max_sessions: count(
    "CDP sessions of one client at once; further attaching is refused, and a client for whom more are attached unasked is closed with 1008",
    "sessions",
    [1, 100_000],
  )(1000),
  max_browser_sessions: count("the same of all clients of one browser", "sessions", [1, 1_000_000])(4000),
  max_message_bytes: bytes("largest message", [1024, 100 * 2 ** 20])(16 * 2 ** 20),
  max_unfinished_bytes: bytes(
    "messages of all clients of one browser that are not whole or not yet judged, so more than the largest message; the client with most is cut",
    [2048, 2 ** 40],
  )(64 * 2 ** 20),
  max_total_unfinished_bytes: bytes("the same of all clients of this daemon", [2048, 2 ** 40])(256 * 2 ** 20),
  max_buffered_bytes: bytes("a client with more than this unread is cut", [1024, 2 ** 31])(128 * 2 ** 20),
  max_browser_buffered_bytes: bytes(
    "all clients of one browser with more than this unread: the client with most is cut",
    [1024, 2 ** 40],
  )(256 * 2 ** 20),
  max_total_buffered_bytes: bytes("the same of all clients of this daemon", [1024, 2 ** 40])(2 ** 30),
  max_total_received_bytes: bytes(
    "messages of all browsers of this daemon that are not whole; the longest is given up, an answer by an error",
    [2 ** 20, 2 ** 40],
  )(2 ** 29),
  stalled_seconds: seconds(
    "a client that reads nothing while the limit is passed is cut after",
    [1, 600],
  )(10),
  start_url_wait_ms: millis(
    "the first client waits for the dispatch of an acquire's start_url at most",
    [0, 60_000],
  )(1000),
  upgrade_limit_seconds: seconds("an upgrade has to be settled within, relaying included")(10),
});

const egress = Type.Object({
  isolation: oneOf(
    "auto: a network namespace of its own for each browser where the kernel grants it, else the proxy alone; namespace: launches nothing without one",
    ["auto", "proxy", "namespace"],
  )("auto"),
  private_hosts: texts(
    "private destinations open to browsers whose network names none itself; a list of their own replaces it, [] closes all",
    "a list of host names, addresses or ranges",
  )([]),
  private_hosts_ceiling: textsOr(
    "private destinations that network.private_hosts of pools and sessions may open at most; what lies outside is refused",
    "a list of host names, addresses or ranges",
  )("egress.private_hosts"),
  allowed_probe_url: textOr("also asked for from inside before a browser is idle, and has to answer")(
    "only a closed destination is tried",
    { pattern: "^https?://\\S+$", form: "http(s)://…" },
  ),
  resolvers: textsOr(
    "DNS servers asked for the names that browsers send",
    "a list of addresses, each with or without a port",
  )("the system's"),
  connect_limit_seconds: seconds("a destination or an upstream proxy has to be reached within", [1, 120])(10),
  idle_seconds: seconds("a connection on which nothing moves is cut after", [1, 86_400])(600),
  max_connections: count(
    "connections of one browser at once; further requests get 503",
    "connections",
    [1, 100_000],
  )(512),
  bytes_per_second: countOr("one browser sends and receives at most, both together", "bytes/s", [
    1024,
    2 ** 40,
  ])("no limit"),
  contact_limit_ms: millisOr(
    "a node that could not ask Redis for so long whether rules have changed closes the way out of its browsers until it can",
    [500, 3_600_000],
  )("never"),
  check_url: text(
    "asked for by checks of proxies that name no URL; the operator's choice, so it may be private",
  )("https://example.com/", { pattern: "^https?://[^/@\\s]+(/\\S*)?$", form: "http(s)://…" }),
  check_limit_seconds: seconds("a check of a proxy takes at most", [1, 50])(10),
  curl_body_bytes: bytes("largest body that POST /browsers/{id}/curl returns", [1024, 2 ** 28])(10 * 2 ** 20),
  curl_browser_bytes: bytes(
    "bodies of such requests and answers held at once for one browser; further ones get 429",
    [1024, 2 ** 40],
  )(32 * 2 ** 20),
  curl_total_bytes: bytes("the same for all browsers of this daemon", [1024, 2 ** 40])(128 * 2 ** 20),
});

const archives = Type.Object({
  directory: textOr(
    "where archives of extensions and profiles are kept; shared by all daemons of a deployment and by no other",
  )("archives in the data directory"),
  s3_bucket: textOr("keeps archives in this bucket of an S3-compatible store instead")("none: the directory"),
  s3_endpoint: textOr("address of the S3-compatible store")("Amazon's", httpUrl),
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

const extensions = Type.Object({
  max_bytes: bytes("largest archive of an extension", [1024, 2 ** 30])(50 * 2 ** 20),
  max_unpacked_bytes: bytes("an extension may unpack to", [1024, 2 ** 32])(200 * 2 ** 20),
  max_files: count("files of one extension", "files", [1, 1_000_000])(10_000),
  upload_stall_seconds: seconds("an upload that sends nothing is given up after", [1, 600])(20),
  upload_limit_seconds: seconds("an upload has to be there whole within", [1, 3600])(300),
  load_limit_seconds: seconds("Chromium has to load an extension within", [1, 120])(30),
  store_url: text("Chrome Web Store's address for archives of extensions")(
    "https://clients2.google.com/service/update2/crx",
    { pattern: "^https?://[^/@\\s]+(/\\S*)?$", form: "http(s)://…" },
  ),
  store_limit_seconds: seconds("a download from the web store takes at most", [1, 55])(30),
});

const profiles = Type.Object({
  max_bytes: bytes("a profile may have, unpacked; one that has more is not saved", [2 ** 20, 2 ** 40])(
    2 * 2 ** 30,
  ),
  max_files: count("files of one profile", "files", [1, 10_000_000])(100_000),
  save_limit_seconds: seconds("a save takes at most, Chromium's own end included", [1, 100])(60),
  save_wait_seconds: seconds("the end of a session waits for its save at most", [0, 55])(30),
});

const periods = Type.Object({
  fill_ms: millis("pools are filled every", [50, 600_000])(1000),
  reap_ms: millis("what nobody gave back is looked for every", [50, 600_000])(5000),
  recycle_ms: millis("old and worn browsers are looked for every", [50, 3_600_000])(30_000),
});

const tombstones = Type.Object({
  keep_hours: hours("deleted sessions can be listed for")(24),
  max_per_project: count("deleted sessions kept per project", "sessions", [0, 10_000_000])(100_000),
});

const limits = Type.Object({
  max_pool_size: count("largest size of one pool", "browsers", [1, 100_000])(1000),
  pooled_sessions: countOr("sum of the sizes of all pools", "browsers")("no limit"),
  max_pools: count("pools of one project", "pools")(1000),
  max_extensions: count("extensions of one project", "extensions", [0, 100_000])(1000),
  max_profiles: count("profiles of one project", "profiles", [0, 1_000_000])(10_000),
  max_proxies: count("proxies of one project", "proxies", [0, 100_000])(1000),
  max_sessions: countOr("on-demand sessions at once", "sessions", [0, 1_000_000])("as many as nodes admit"),
  events_kept: count(
    "moves of browsers kept in a pool's stream of events",
    "events",
    [100, 10_000_000],
  )(10_000),
  events_kept_in_all: count(
    "the same of all pools together, in even shares of at least 100; some 100 bytes each",
    "events",
    [100, 1_000_000_000],
  )(200_000),
});

const stop = Type.Object({
  step_seconds: seconds("each part may take to stop, after the drain", [1, 600])(15),
  limit_seconds: seconds("the whole stop may take, after the drain", [1, 3600])(45),
  hurried_seconds: seconds("the whole stop may take after a second signal", [1, 600])(8),
});

const log = Type.Object({
  level: oneOf("least level that is logged", logLevels)("info"),
  format: oneOf("form of the log; auto: text on a terminal, JSON otherwise", logFormats)("auto"),
  buffer_bytes: bytes("lines held for a slow reader; further ones are dropped and counted", [4096, 2 ** 28])(
    2 ** 20,
  ),
  max_lines_per_second: countOr(
    "lines of one message about one browser, or about none; further ones are counted and told in one line. Level debug has no limit",
    "lines/s",
  )("no limit", 10),
  flush_limit_ms: millis("the end of the process waits for lines to be read at most", [1, 60_000])(1000),
});

/** The whole configuration as the file states it: snake_case, the unit at the end of the key. */
export const ConfigFile = Type.Object({
  role: oneOf("all: everything in one process; control: API and schedules; node: browsers", roleNames)(
    "all",
    { env: "REMUDA_ROLE" },
  ),
  region: oneOf("region of this deployment; sessions for others are refused", regions)("us-east", {
    env: "REMUDA_REGION",
  }),
  data_dir: textOr("keys, the private Redis and what else outlives the process")(
    ".remuda beside package.json",
    { env: "REMUDA_DATA_DIR" },
  ),
  api_key: secretOr("the root API key")("drawn once, kept in the data directory", {
    env: "REMUDA_API_KEY",
    ...key,
  }),
  cluster_secret: secretOr("signs the URLs of browsers; the same for all daemons of a deployment")(
    "drawn once, kept in the data directory",
    { env: "REMUDA_CLUSTER_SECRET", ...key },
  ),
  encryption_key: secretOr(
    "seals what is kept encrypted, such as passwords of proxies; random, and the same for all daemons of a deployment",
  )("drawn once, kept in the data directory", { env: "REMUDA_ENCRYPTION_KEY", ...key }),
  server,
  redis,
  node,
  browser,
  fill,
  acquire,
  recycle,
  drain,
  gateway,
  egress,
  archives,
  extensions,
  profiles,
  periods,
  tombstones,
  limits,
  stop,
  log,
  pools: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
    description: "pools to create when absent: bodies of POST /browser_pools",
    default: [],
  }),
});
export type ConfigFile = Static<typeof ConfigFile>;
