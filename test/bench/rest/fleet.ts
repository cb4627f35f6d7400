import { setMaxListeners } from "node:events";
import { Redis } from "ioredis";
import { pause, systemClock } from "../../../src/base/clock.js";
import type { Log } from "../../../src/base/log.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { openConfig } from "../../../src/config/config.js";
import type { DaemonContext } from "../../../src/daemon/boot.js";
import { drainChannel, nodeCount } from "./sizes.js";
import { type SimulatedNode, startNode } from "./node.js";

/** Nodes of a whole fleet in one process, each with the connections that a node has. */
const said = new Set<string>();
/** Each message once: what goes wrong here goes wrong for a hundred nodes. */
function say(fields: object, message: string): void {
  if (!said.has(message)) console.error(`fleet: ${message} ${JSON.stringify(fields)}`.slice(0, 300));
  said.add(message);
}
const log: Log = { debug() {}, info() {}, warn: say, error: say, child: () => log };

const url = process.env["REDIS_URL"] ?? "";
const opened = openConfig({ packageRoot: import.meta.dirname });
if (opened.kind === "refused") throw new Error(opened.faults.join("; "));
const never = new AbortController().signal;
setMaxListeners(0, never);
const context: DaemonContext = {
  log,
  clock: systemClock,
  stopping: never,
  hurry: never,
  redisUrl: new Secret(url),
  fail: (error) => {
    throw error;
  },
};

const nodes: SimulatedNode[] = [];
// Spread over one period, as the nodes of a fleet are that were started by people.
for (let started = 0; started < nodeCount; started += 1) {
  nodes.push(await startNode(opened.config, context));
  await pause(systemClock, opened.config.node.expirePeriodMs / nodeCount);
}
const listener = new Redis(url);
await listener.subscribe(drainChannel);
listener.on("message", (_, id) => nodes.find((node) => node.id === id)?.drain());
console.log("fleet ready");
