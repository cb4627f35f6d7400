import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readlinkSync } from "node:fs";
import { bound } from "../../support/bound.js";
import { until } from "../../support/browser/chromium-until.js";
import type { Machine } from "./network.js";

function run(...[program, ...args]: readonly [string, ...string[]]): void {
  const { status, stderr, error } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${error?.message ?? stderr}`);
}
const succeeds = (...[program, ...args]: readonly [string, ...string[]]): boolean =>
  spawnSync(program, args).status === 0;

/** In a namespace that is gone at once; an interface's peer, as each machine has one. */
export const canHaveNamespaces = (): boolean =>
  succeeds("unshare", "--net", "ip", "link", "add", "name", "m0", "type", "veth", "peer", "name", "eth0");

/** A machine of its own on the network, as long as its process lives. */
export interface CabledMachine extends Required<Omit<Machine, "redisUrl" | "settings" | "port">> {
  readonly address: string;
}

/** A switch in a namespace of its own, and cables from it to each machine and to us. */
export interface Switch {
  join(): Promise<CabledMachine>;
  close(): Promise<void>;
}

interface Namespace {
  readonly child: ChildProcess;
  readonly enter: readonly ["nsenter", string];
  inside(...ip: readonly string[]): void;
}

/** A namespace that ends with its process: with this run at the latest. */
async function openNamespace(): Promise<Namespace> {
  const own = readlinkSync("/proc/self/ns/net");
  const [program = "", ...args] = bound("unshare", "--net", "sleep", "infinity");
  const child = spawn(program, args, { stdio: "ignore" });
  await until("a namespace", () => {
    try {
      return readlinkSync(`/proc/${child.pid}/ns/net`) !== own;
    } catch {
      return false;
    }
  });
  const enter = ["nsenter", `--net=/proc/${child.pid}/ns/net`] as const;
  const inside = (...ip: readonly string[]): void => run(...enter, "ip", ...ip);
  inside("link", "set", "lo", "up");
  return { child, enter, inside };
}

/** Addresses for measurements (RFC 2544), of which each run takes 254. */
const netOf = (pid: number): string => `198.18.${pid % 256}`;

const bridges = { this: "br0", other: "br1" } as const;
const pair = (name: string, peer: string): readonly string[] => [
  "link",
  "add",
  "name",
  name,
  "type",
  "veth",
  "peer",
  "name",
  peer,
  "netns",
];

export async function openSwitch(): Promise<Switch> {
  const net = netOf(process.pid);
  const hub = await openNamespace();
  const children = [hub.child];
  for (const bridge of Object.values(bridges)) {
    hub.inside("link", "add", "name", bridge, "type", "bridge");
    hub.inside("link", "set", bridge, "up");
  }
  const own = `rmd${process.pid % 1_000_000}`;
  run("ip", ...pair(own, "us"), String(hub.child.pid));
  run("ip", "addr", "add", `${net}.1/24`, "dev", own);
  run("ip", "link", "set", own, "up");
  hub.inside("link", "set", "us", "master", bridges.this, "up");
  let machines = 0;
  return {
    async join() {
      const { child, inside, enter } = await openNamespace();
      children.push(child);
      const [cable, address] = [`m${(machines += 1)}`, `${net}.${10 + machines}`];
      hub.inside(...pair(cable, "eth0"), String(child.pid));
      hub.inside("link", "set", cable, "master", bridges.this, "up");
      inside("addr", "add", `${address}/24`, "dev", "eth0");
      inside("link", "set", "eth0", "up");
      const late = ["tc", "qdisc", "replace", "dev", "eth0", "root", "netem", "delay"] as const;
      return {
        through: enter,
        address,
        cut: async () => hub.inside("link", "set", cable, "down"),
        restore: async () => hub.inside("link", "set", cable, "up"),
        delay: async (ms) => run(...enter, ...late, `${ms}ms`),
        move: (side) => hub.inside("link", "set", cable, "master", bridges[side]),
      };
    },
    async close() {
      for (const child of children) {
        child.kill("SIGKILL");
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      }
      // It goes with the namespace of its other end, which the kernel removes in its own time.
      await until("our cable gone", () => !succeeds("ip", "link", "show", own));
    },
  };
}
