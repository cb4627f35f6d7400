import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A bridge that pods are attached to, as a cluster's network does. */
export interface PodNetwork {
  /** This machine's own address on it. */
  readonly host: string;
  readonly range: string;
  readonly bridge: string;
  addressOf(index: number): string;
  /** Writes the program that attaches the pod of that index; gives its path. */
  attachment(directory: string, index: number): Promise<string>;
}

/**
 * Addresses of a range that is kept for tries of networks (RFC 2544). It goes with the network namespace in
 * which it is opened.
 */
export async function openPodNetwork(): Promise<PodNetwork> {
  const bridge = "pods";
  const addressOf = (index: number): string => `198.18.0.${index}`;
  await run("ip", ["link", "set", "lo", "up"]);
  await run("ip", ["link", "add", bridge, "type", "bridge"]);
  await run("ip", ["addr", "add", `${addressOf(1)}/24`, "dev", bridge]);
  await run("ip", ["link", "set", bridge, "up"]);
  return {
    host: addressOf(1),
    range: "198.18.0.0/24",
    bridge,
    addressOf,
    async attachment(directory, index) {
      const file = join(directory, "attach.sh");
      const veth = `${bridge}x${index}`;
      // The runtime tells of the container on the standard input.
      const script = `set -e
pid=$(sed -n 's/.*"pid"[^0-9]*\\([0-9]*\\).*/\\1/p' | head -n 1)
ip link delete ${veth} 2>/dev/null || true
ip link add ${veth} type veth peer name eth0 netns "$pid"
ip link set ${veth} master ${bridge} up
inside() { nsenter --target "$pid" --net -- ip "$@"; }
inside addr add ${addressOf(index)}/24 dev eth0
inside link set eth0 up
inside link set lo up
inside route add default via ${addressOf(1)}
`;
      await writeFile(file, script);
      return file;
    },
  };
}
