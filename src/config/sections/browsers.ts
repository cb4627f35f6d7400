import { Type } from "typebox";
import { engines, rungNames } from "../../spec/bodies.js";
import {
  bytes,
  bytesOr,
  count,
  countOr,
  millis,
  oneOf,
  ratio,
  seconds,
  secondsOr,
  switched,
  textOr,
  texts,
  httpOrigin,
} from "../kinds.js";

const nodeName = { pattern: "^[0-9a-z-]{1,63}$", form: "1 to 63 of a-z, 0-9 and -" } as const;

export const nodeSection = Type.Object({
  id: textOr("this node's name")("drawn once, kept in the data directory", {
    env: "REMUDA_NODE_ID",
    ...nodeName,
  }),
  address: textOr("where other daemons reach this node's gateway")(
    "http://<host>:<port>, of 0.0.0.0 the machine's first IPv4 address, of :: its first address",
    httpOrigin,
  ),
  zone: textOr("where this node's machine stands; browsers of one pool are spread over zones")(
    "none is told",
    {
      env: "REMUDA_NODE_ZONE",
      pattern: "^[a-zA-Z0-9._/-]{1,63}$",
      form: "1 to 63 of a-z, A-Z, 0-9, ., _, / and -",
    },
  ),
  labels: texts("what pools choose this node by (node_selector)", "a list of key=value")([]),
  hand_out_own_address: switched("URLs of browsers name the node's own address instead of the public URL")(
    false,
  ),
  max_browsers: countOr("browsers at once", "browsers")("as many as memory admits"),
  overcommit: ratio("memory classes admitted, as a multiple of memory", [0.1, 64])(4),
  memory_bytes: bytesOr("memory for browsers")("the machine's, or this container's limit", null, {
    env: "REMUDA_NODE_MEMORY_BYTES",
  }),
  parallel_launches: countOr("launches at once", "launches", [1, 256])("number of cores"),
  launch_pickup_seconds: seconds("a launch whose job its node has not taken up is claimed anew after")(10),
  launch_limit_seconds: seconds("a launch has failed after")(30),
  // A pool gives one up that is not over after 25 s (store/lua/pool/reap.lua).
  reset_limit_seconds: seconds("a reset that takes longer retires the browser", [1, 20])(10),
  probe_period_seconds: seconds("an idle browser is probed every")(15),
  probe_limit_seconds: seconds("a probe without an answer retires the browser after")(5),
  expire_period_seconds: seconds("inactive leases are ended every; a lease ends at most this late")(5),
  beat_period_ms: millis("the node says that it is alive every", [50, 60_000])(1000),
  isolated_limit_seconds: seconds(
    "a node that could not ask Redis for so long ends its browsers",
    [10, 86_400],
  )(120),
  lost_after_ms: millis("a node without a beat is lost after", [200, 600_000])(15_000),
  scratch_dir: textOr(
    "directories of browsers, of this daemon alone: nothing else may lie there; has to be passable for their uids",
  )("a directory of this data directory's own, in /dev/shm where 1 GiB is free there, else in /var/tmp"),
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
  copied_executables: switched(
    "a daemon that is root starts Chromium from a copy in memory, with huge pages, after its first launches, where sixteen times that memory is free",
  )(true),
  memory_watch_period_ms: millis(
    "memory is looked at every: what is left of the node's, that of browsers where no cgroup bounds it, and the scratch directory's fullness",
    [100, 60_000],
  )(1000),
  min_free_memory_percent: count(
    "browsers that stand by leave so much of the machine's memory, or of this container's limit; where less is left, some of them end",
    "%",
    [0, 90],
  )(10),
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

export const browserSection = Type.Object({
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

export const drainSection = Type.Object({
  limit_seconds: secondsOr("leases may still take at the stop of a node")("0 in role all, 540 in role node"),
});
