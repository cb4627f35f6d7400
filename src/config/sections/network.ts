import { Type } from "typebox";
import {
  bytes,
  count,
  countOr,
  millis,
  millisOr,
  oneOf,
  seconds,
  text,
  textOr,
  texts,
  textsOr,
  httpUrl,
} from "../kinds.js";

export const gatewaySection = Type.Object({
  ping_seconds: seconds(
    "how often clients are pinged; one that leaves two pings unanswered is disconnected",
    [1, 3600],
  )(20),
  max_clients: count("clients of one browser at once; further ones get 429", "clients", [1, 10_000])(32),
  max_bidi_clients: count(
    "WebDriver BiDi clients of one browser at once, each with a process of its own; further ones get 429",
    "clients",
    [0, 10_000],
  )(8),
  max_total_bidi_clients: count("the same of all browsers of this daemon", "clients", [0, 100_000])(64),
  bidi_heap_bytes: bytes(
    "heap of the process of a BiDi client; one that needs more ends, and its client with it",
    [32 * 2 ** 20, 2 ** 32],
  )(256 * 2 ** 20),
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
    "a client that reads nothing while the limit is passed, or nothing of the answer of /curl, is cut after",
    [1, 600],
  )(10),
  start_url_wait_ms: millis(
    "the first client waits for the dispatch of an acquire's start_url at most",
    [0, 60_000],
  )(1000),
  upgrade_limit_seconds: seconds("an upgrade has to be settled within, relaying included")(10),
});

export const egressSection = Type.Object({
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
  proxy_hosts: texts(
    "private places at which proxies of the registry may be; pages reach nothing by it",
    "a list of host names, addresses or ranges",
  )([]),
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
  )("https://example.com/", httpUrl),
  check_limit_seconds: seconds("a check of a proxy takes at most", [1, 50])(10),
  curl_body_bytes: bytes("largest body that POST /browsers/{id}/curl returns", [1024, 2 ** 28])(10 * 2 ** 20),
  curl_browser_bytes: bytes(
    "bodies of such requests and answers held at once for one browser; further ones get 429",
    [1024, 2 ** 40],
  )(32 * 2 ** 20),
  curl_total_bytes: bytes("the same for all browsers of this daemon", [1024, 2 ** 40])(128 * 2 ** 20),
});
