// An egress in a process of its own that counts its garbage collections. Argument: directory of compiled
// sources. Says the URL of its proxy; for each line that it is sent it says how many there were since the last.
import { createInterface } from "node:readline";
import { PerformanceObserver } from "node:perf_hooks";

const [compiled] = process.argv.slice(2);
const load = (path) => import(`${compiled}/src/${path}`);
const { newBrowserId, onDemandPartition } = await load("base/ids.js");
const { systemClock } = await load("base/clock.js");
const { parseHostPattern } = await load("base/net/hosts.js");
const { Egress } = await load("egress/egress.js");
const { openPort } = await load("egress/port.js");
const { makeReservedEndpoints } = await load("egress/reserved-endpoints.js");

let collections = 0;
const observer = new PerformanceObserver((list) => (collections += list.getEntries().length));
observer.observe({ entryTypes: ["gc"] });

const log = { debug() {}, info() {}, warn() {}, error: console.error, child: () => log };
const { pattern } = parseHostPattern("127.0.0.0/8", { withRanges: true });
const egress = await Egress.open(
  {
    browser: newBrowserId(onDemandPartition),
    listener: openPort({ host: "127.0.0.1" }),
    rules: { allowed: null, privates: [pattern], routes: [] },
  },
  {
    settings: {
      connectMs: 10_000,
      idleMs: 600_000,
      maxConnections: 100,
      bytesPerSecond: null,
      headerBytes: 16_384,
    },
    resolve: async () => [],
    reserved: makeReservedEndpoints([]),
    proxyHosts: [],
    clock: systemClock,
    log,
    meter: { request() {}, carried() {} },
  },
);
const say = (line) => process.stdout.write(`${line}\n`);
say(egress.proxyUrl);
createInterface({ input: process.stdin })
  .on("line", () => {
    collections += observer.takeRecords().length;
    say(String(collections));
    collections = 0;
  })
  .once("close", () => process.exit());
