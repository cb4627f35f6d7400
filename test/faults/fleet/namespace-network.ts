import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readlinkSync } from "node:fs";
import { bound } from "../../support/bound.js";
import { until } from "../../support/browser/chromium-until.js";
import type { FleetNetwork, Machine } from "./network.js";
import { openRestartableRedis } from "./restartable-redis.js";

function run(...[program, ...args]: readonly [string, ...string[]]): void {
  const { status, stderr, error } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${error?.message ?? stderr}`);
}
const succeeds = (...[program, ...args]: readonly [string, ...string[]]): boolean =>
  spawnSync(program, args).status === 0;

/** In a namespace that is gone at once; an interface's peer, as each machine has one. */
export const canHaveNamespaces = (): boolean =>
  succeeds("unshare", "--net", "ip", "link", "add", "name", "m0", "type", "veth", "peer", "name", "eth0");

/** A namespace that ends with its process: with this run at the latest. */
async function openNamespace(): Promise<{
  child: ChildProcess;
  inside: (...ip: string[]) => void;
  enter: string[];
}> {
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
  const enter = ["nsenter", `--net=/proc/${child.pid}/ns/net`];
  const inside = (...ip: string[]): void => run("nsenter", ...enter.slice(1), "ip", ...ip);
  inside("link", "set", "lo", "up");
  return { child, enter, inside };
}

/** Addresses for measurements (RFC 2544), of which each run takes 254. */
const netOf = (pid: number): string => `198.18.${pid % 256}`;

/** A switch in a namespace of its own, and cables from it to each machine and to us. */
export async function openNamespaceNetwork(): Promise<FleetNetwork> {
  const net = netOf(process.pid);
  const hub = await openNamespace();
  const children = [hub.child];
  const name = `rmd${process.pid % 1_000_000}`;
  hub.inside("link", "add", "name", "br0", "type", "bridge");
  hub.inside("link", "set", "br0", "up");
  run(
    "ip",
    "link",
    "add",
    "name",
    name,
    "type",
    "veth",
    "peer",
    "name",
    "us",
    "netns",
    String(hub.child.pid),
  );
  run("ip", "addr", "add", `${net}.1/24`, "dev", name);
  run("ip", "link", "set", name, "up");
  hub.inside("link", "set", "us", "master", "br0", "up");
  let machines = 0;
  const join = async (): Promise<{ enter: string[]; address: string; cable: string }> => {
    const { child, inside, enter } = await openNamespace();
    children.push(child);
    const [cable, address] = [`m${(machines += 1)}`, `${net}.${10 + machines}`];
    hub.inside(
      "link",
      "add",
      "name",
      cable,
      "type",
      "veth",
      "peer",
      "name",
      "eth0",
      "netns",
      String(child.pid),
    );
    hub.inside("link", "set", cable, "master", "br0", "up");
    inside("addr", "add", `${address}/24`, "dev", "eth0");
    inside("link", "set", "eth0", "up");
    return { enter, address, cable };
  };
  const at = await join();
  const redis = await openRestartableRedis({ through: at.enter, host: at.address, port: 6379 });
  return {
    kind: "network namespaces",
    redis,
    async join(): Promise<Machine> {
      const { enter, address, cable } = await join();
      return {
        through: enter,
        redisUrl: redis.url,
        settings: { server: { host: address }, node: {} },
        cut: async () => hub.inside("link", "set", cable, "down"),
        restore: async () => hub.inside("link", "set", cable, "up"),
        async delay(ms) {
          run(
            ...(enter as [string, ...string[]]),
            "tc",
            "qdisc",
            "replace",
            "dev",
            "eth0",
            "root",
            "netem",
            "delay",
            `${ms}ms`,
          );
        },
      };
    },
    async close() {
      await redis.close();
      for (const child of children) {
        child.kill("SIGKILL");
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      }
      // It goes with the namespace of its other end, which the kernel removes in its own time.
      await until("our cable gone", () => !succeeds("ip", "link", "show", name));
    },
  };
}
