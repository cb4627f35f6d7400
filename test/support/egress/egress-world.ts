import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { promisify } from "node:util";

/** The addresses that attempts try; each of them is this machine. Absent where the machine has none. */
export interface World {
  /** Where the allowed site listens, and what a client outside would call this machine. */
  readonly site: string;
  /** An address for attempts to which it does not matter which one is denied. */
  readonly denied: string;
  /** The node's own, not loopback. */
  readonly node?: string;
  readonly node6?: string;
  readonly metadata?: string;
  /** Name servers of this machine, where we answer in their place. */
  readonly nameServers: readonly string[];
  /** Packets that left the machine since it was made; absent where that cannot be known. */
  countPackets?(): Promise<number>;
}

const run = promisify(execFile);
const [outside, inside] = ["out0", "out1"];
/** Looks public, and the way to it is closed: a name that leads there is found and not reached. */
export const unreachable = "23.192.228.81";
const made = {
  denied: "23.192.228.80",
  metadata: "169.254.169.254",
  node: "10.77.0.1",
  node6: "fd77::1",
} as const;

/** May this process have a network of its own? */
export const mayHaveOwnNetwork = (): Promise<boolean> =>
  run("unshare", ["--net", "ip", "link", "set", "lo", "up"]).then(
    () => true,
    () => false,
  );

/**
 * Fills an empty network namespace, which the process is in: addresses of every kind, name servers where
 * the machine has its own, and a way out that leads nowhere and counts what it is given.
 */
export async function openOwnNetwork(): Promise<World> {
  const nameServers = await nameServersOf("/etc/resolv.conf");
  const ip = async (...words: string[]): Promise<void> => void (await run("ip", words));
  await ip("link", "set", "lo", "up");
  // The kernel tells of each multicast group that is joined twice, the second time up to 1 s later, when it
  // may count as a browser's.
  await writeFile("/proc/sys/net/ipv4/igmp_qrv", "1");
  for (const address of new Set([
    made.denied,
    made.metadata,
    ...nameServers.filter((server) => !server.startsWith("127.")),
  ])) {
    await ip("address", "add", address, "dev", "lo");
  }
  await ip("link", "add", outside, "type", "veth", "peer", "name", inside);
  // The kernel itself would otherwise send: it looks for neighbours and solicits routers.
  for (const end of [outside, inside])
    await ip("link", "set", end, "addrgenmode", "none", "arp", "off", "up");
  await ip("address", "add", `${made.node}/24`, "dev", outside);
  await ip("address", "add", `${made.node6}/64`, "dev", outside, "nodad");
  await ip("route", "add", "default", "dev", outside);
  await ip("route", "add", "unreachable", unreachable);
  await ip("-6", "route", "add", "default", "dev", outside);
  // The second column of /proc/net/dev counts the packets received. sysfs is of no use, because it shows the
  // network in which it was mounted.
  const countPackets = async (): Promise<number> =>
    Number(new RegExp(`${inside}:\\s*\\d+\\s+(\\d+)`).exec(await readFile("/proc/net/dev", "utf8"))?.[1]);
  return { site: "127.0.0.1", ...made, nameServers, countPackets };
}

/** The network as it is. `address` is one of this machine that browsers can reach. */
export function findOwnNetwork(address = "127.0.0.1"): World {
  const others = Object.values(networkInterfaces())
    .flatMap((found) => found ?? [])
    .filter(({ internal }) => !internal);
  const ipv4 = others.find(({ family }) => family === "IPv4")?.address;
  const ipv6 = others.find(({ family, scopeid }) => family === "IPv6" && !scopeid)?.address;
  return {
    site: address,
    denied: address,
    ...(ipv4 && { node: ipv4 }),
    ...(ipv6 && { node6: ipv6 }),
    nameServers: [],
  };
}

async function nameServersOf(file: string): Promise<string[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  const found = [...text.matchAll(/^nameserver\s+(\S+)/gm)].map(([, server = ""]) => server);
  // resolv.conf(5): without one it is the machine itself.
  return found.length > 0 ? found : ["127.0.0.1"];
}
