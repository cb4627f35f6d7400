import { newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import { systemClock } from "../../../src/base/clock.js";
import type { Log } from "../../../src/base/log.js";
import { Egress } from "../../../src/egress/egress.js";
import { makeReservedEndpoints } from "../../../src/egress/reserved-endpoints.js";
import { openPort } from "../../../src/egress/port.js";
import { makeResolve } from "../../../src/egress/resolve.js";
import { parseHostPattern } from "../../../src/base/net/hosts.js";

// An egress as a browser has it, a program of its own: every host allowed, loopback open.
const silent: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: console.error,
  child: () => silent,
};
const loopback = parseHostPattern("127.0.0.0/8", { withRanges: true });
const egress = await Egress.open(
  {
    browser: newBrowserId(onDemandPartition),
    listener: openPort(),
    rules: { allowed: null, privates: loopback.kind === "pattern" ? [loopback.pattern] : [], routes: [] },
  },
  {
    settings: {
      connectMs: 10_000,
      idleMs: 600_000,
      maxConnections: 512,
      bytesPerSecond: null,
      headerBytes: 16_384,
    },
    resolve: makeResolve({ clock: systemClock, limitMs: 5000 }),
    reserved: makeReservedEndpoints([]),
    proxyHosts: [],
    clock: systemClock,
    log: silent,
    meter: { request: () => {}, carried: () => {} },
  },
);
process.once("SIGTERM", () => void egress.close().then(() => process.exit()));
// Each egress listens on a loopback address of its own.
console.log(`listening ${egress.proxyUrl}`);
