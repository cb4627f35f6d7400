import { Type } from "typebox";
import { sentinelUrlPattern } from "../../base/net/redis-url.js";
import {
  bytes,
  count,
  countOr,
  millis,
  oneOf,
  seconds,
  secretOr,
  switched,
  text,
  textOr,
  texts,
  httpOrigin,
} from "../kinds.js";

const redisUrl = {
  pattern: `^(rediss?://|/)\\S+$|${sentinelUrlPattern}`,
  form:
    "redis://…, rediss://…, redis+sentinel://host:port,host:port/name, with %XX for what is special in names " +
    "and passwords, or the path of a unix socket",
} as const;
const logFormats = ["auto", "json", "text"] as const;
const logLevels = ["debug", "info", "warn", "error", "silent"] as const;

export const serverSection = Type.Object({
  host: text("address to listen on")("127.0.0.1", { env: "REMUDA_HOST" }),
  port: count("port to listen on; 0 takes a free one", "port", [0, 65_535])(4700, { env: "REMUDA_PORT" }),
  public_url: textOr("where clients reach this daemon; part of every URL handed out")(
    "http://<host>:<port>, of 0.0.0.0 the machine's first IPv4 address, of :: its first address",
    { env: "REMUDA_PUBLIC_URL", ...httpOrigin },
  ),
  trusted_proxies: texts(
    "proxies before this daemon, whose X-Forwarded-For names the caller",
    "a list of addresses or ranges",
  )([]),
  request_timeout_seconds: seconds("a request has to arrive whole within")(30),
  keep_alive_seconds: seconds("an idle connection is kept; longer than load balancers do")(72),
  body_limit_bytes: bytes("largest JSON body; a browser policy alone may have 5 MiB")(8 * 2 ** 20),
  max_connections: count("connections held at once", "connections")(20_000),
  close_limit_seconds: seconds("requests in flight at the stop may still take", [1, 600])(5),
});

export const redisSection = Type.Object({
  url: secretOr("Redis to use")("a private Redis in the data directory", { env: "REDIS_URL", ...redisUrl }),
  sentinel_password: secretOr("password of the sentinels that redis+sentinel:// names")("none", {
    env: "REDIS_SENTINEL_PASSWORD",
  }),
  sentinel_username: textOr("user of the sentinels, where they have users")("their default user"),
  cluster: switched("the URL names one node of a Redis Cluster")(false),
  tls_ca_file: textOr("PEM of the CAs that vouch for Redis and its sentinels, where rediss is spoken")(
    "the CAs that Node.js trusts",
  ),
  tls_certificate_file: textOr("PEM of the certificate shown to a Redis that asks for one")("none"),
  tls_key_file: textOr("PEM of that certificate's key")("none"),
  executable: text("redis-server of the private Redis: a path, or a name on the path")("redis-server"),
  command_timeout_ms: millis(
    "a command is given up after, and a connection that answered nothing for so long is made anew",
    [100, 60_000],
  )(2000),
  connect_timeout_ms: millis("a connection attempt is given up after")(5000),
  start_limit_seconds: seconds("the private Redis has to answer within, its file read")(60),
  stop_limit_seconds: seconds("the private Redis is killed when it takes longer to stop", [1, 600])(10),
});

export const logSection = Type.Object({
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

export const stopSection = Type.Object({
  step_seconds: seconds("each part may take to stop, after the drain", [1, 600])(15),
  limit_seconds: seconds("the whole stop may take, after the drain", [1, 3600])(45),
  hurried_seconds: seconds("the whole stop may take after a second signal", [1, 600])(8),
});

const label = { pattern: "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", form: "a name of Kubernetes" } as const;

export const operatorSection = Type.Object({
  api_url: textOr("where the operator reaches the API of Remuda")("none", {
    env: "REMUDA_API_URL",
    ...httpOrigin,
  }),
  namespace: text("namespace of the BrowserPools and of the nodes' pods")("remuda", {
    env: "REMUDA_NAMESPACE",
    ...label,
  }),
  period_seconds: seconds("BrowserPools are listed, and costs of pods are written, every", [1, 600])(10),
  request_limit_seconds: seconds("a request to Kubernetes or to the API is given up after", [1, 60])(10),
});
