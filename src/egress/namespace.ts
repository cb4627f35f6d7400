import { execFile } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { type Log, textOf } from "../base/log.js";
import { type Libc, loadLibc } from "./libc.js";
import type { Listener } from "./parts.js";

/** The programs that set up a namespace: nsenter of util-linux, ip of iproute2. */
export interface NamespaceTools {
  readonly nsenter?: string;
  readonly ip?: string;
}

/** The namespace tier of this machine, or why there is none. */
export type Namespaces =
  | { readonly kind: "available"; readonly openNamespace: () => Promise<NamespaceListener> }
  | { readonly kind: "unavailable"; readonly why: string };

/**
 * Where the proxy of one browser listens: inside that browser's network namespace, which only root can open by its path.
 * `close` lets go of it; the kernel removes it when its last process and socket are gone too.
 */
export interface NamespaceListener extends Listener {
  readonly tier: "namespace";
  readonly namespace: string;
}

/** A network namespace, held by nothing but these descriptors. */
export interface Made {
  readonly namespace: number;
  /** Listens in it. */
  readonly socket: number;
}

/** The same for all: each browser sees only its own. */
const proxyPort = 3128;
const setUpLimitMs = 5_000;

const loopback = ["link set lo up"];
/**
 * A network that leads nowhere. Without it `navigator.onLine` is false; a pair of veth devices is the one kind that every
 * kernel with namespaces seems to have (dummy is a module of its own). The gateway's address is nobody's.
 */
const devices = ["link add eth0 type veth peer name eth1"];
const dangling = [
  "addr add 10.255.255.2/24 dev eth0", "link set eth0 up", "link set eth1 up", "route add default via 10.255.255.1 dev eth0",
];
/**
 * Else each device gets an address of its own about a second later, once IPv6 has looked for others that have it
 * (measured), and Chromium breaks off whatever it loads when its addresses change (ERR_NETWORK_CHANGED).
 */
const settled = ["link set eth0 addrgenmode none", "link set eth1 addrgenmode none"];

/** What is tried, the best first: without IPv6 in the kernel there is no such mode, and no need for it. */
const networks = [[...loopback, ...devices, ...settled, ...dangling], [...loopback, ...devices, ...dangling], loopback];

/**
 * Whether this process can give each browser a network namespace of its own, found out by making one. It takes Linux,
 * CAP_SYS_ADMIN and CAP_NET_ADMIN (in practice root), nsenter, ip, and a build of koffi for the platform. A daemon without
 * root could be given namespaces through a user namespace where the kernel allows those; that is not built.
 */
export async function findNamespaces({ tools, log }: { tools: NamespaceTools; log: Log }): Promise<Namespaces> {
  try {
    const openNamespace = await tryNamespace(tools);
    log.info({ tier: "namespace" }, "egress tier examined");
    return { kind: "available", openNamespace };
  } catch (error) {
    const why = textOf(error);
    log.info({ tier: "proxy", why }, "egress tier examined");
    return { kind: "unavailable", why };
  }
}

async function tryNamespace({ nsenter, ip }: NamespaceTools): Promise<() => Promise<NamespaceListener>> {
  if (process.platform !== "linux") throw new Error("network namespaces are Linux's");
  if (nsenter === undefined) throw new Error("nsenter (util-linux) is not installed");
  if (ip === undefined) throw new Error("ip (iproute2) is not installed");
  const libc = await loadLibc();
  const failures: Error[] = [];
  for (const network of networks) {
    const openNamespace = (): Promise<NamespaceListener> => open({ libc, nsenter, ip, network });
    try {
      (await openNamespace()).close();
      return openNamespace;
    } catch (error) {
      failures.push(error as Error);
    }
  }
  throw new Error(failures.map(textOf).join("; "));
}

interface Parts {
  readonly libc: Libc;
  readonly nsenter: string;
  readonly ip: string;
  /** Commands for ip(8). */
  readonly network: readonly string[];
}

async function open({ libc, nsenter, ip, network }: Parts): Promise<NamespaceListener> {
  const made = makeNamespace(libc);
  const namespace = `/proc/${process.pid}/fd/${made.namespace}`;
  const listener = listenerOf(made, namespace);
  try {
    await feed([nsenter, `--net=${namespace}`, "--", ip, "-batch", "-"], network);
    return listener;
  } catch (error) {
    listener.close();
    throw error;
  }
}

/**
 * Makes a network namespace with a socket that listens in it. All of it is one synchronous block, for this thread is away
 * from home meanwhile: whatever else ran on it would open its connections in there. A thread that cannot come home ends
 * the process: a daemon with its main thread in a namespace without network would look alive and reach nobody.
 */
export function makeNamespace(libc: Libc): Made {
  const home = openSync("/proc/thread-self/ns/net", "r");
  try {
    libc.leaveNetwork();
    try {
      return makeWithin(libc);
    } finally {
      comeHome(libc, home);
    }
  } finally {
    closeSync(home);
  }
}

function makeWithin(libc: Libc): Made {
  const namespace = openSync("/proc/thread-self/ns/net", "r");
  try {
    return { namespace, socket: libc.listen(proxyPort) };
  } catch (error) {
    closeSync(namespace);
    throw error;
  }
}

function comeHome(libc: Libc, home: number): void {
  try {
    libc.enterNetwork(home);
  } catch {
    process.abort();
  }
}

function listenerOf({ namespace: descriptor, socket }: Made, namespace: string): NamespaceListener {
  const held = new Set([descriptor, socket]);
  return {
    tier: "namespace",
    proxyUrl: `http://127.0.0.1:${proxyPort}`,
    namespace,
    listen: (server) => new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen({ fd: socket }, () => {
        server.off("error", reject);
        // It is the server's from now on.
        held.delete(socket);
        resolve();
      });
    }),
    close() {
      for (const each of held) closeSync(each);
      held.clear();
    },
  };
}

/** Runs a program, from its path on, with these lines as its input. */
const feed = ([program = "", ...args]: readonly string[], lines: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = execFile(program, args, { timeout: setUpLimitMs, killSignal: "SIGKILL", env: {} }, (error, _, said) => {
      if (error === null) resolve();
      else reject(new Error(`${program}: ${said.trim() || textOf(error)}`));
    });
    // It may end without having read.
    child.stdin?.on("error", () => {});
    child.stdin?.end(`${lines.join("\n")}\n`);
  });
