import { execFile } from "node:child_process";
import { closeSync } from "node:fs";
import { promisify } from "node:util";
import type { Clock } from "../../base/clock.js";
import { type Log, textOf } from "../../base/log.js";
import { type MadeNamespace, NamespaceMaker } from "./maker.js";
import { type NamespaceListener, SpareNamespaces } from "./spare-namespaces.js";
import { networks, type NetlinkMessage } from "./netlink.js";

/** The programs of util-linux that lead into a namespace. */
export interface NamespaceTools {
  readonly nsenter?: string;
  /** Needed by daemons that are not root. */
  readonly unshare?: string;
}

/** The namespace tier of this machine, or why there is none. */
export type Namespaces =
  | {
      readonly kind: "available";
      readonly openNamespace: () => Promise<NamespaceListener>;
      readonly close: () => Promise<void>;
    }
  | { readonly kind: "unavailable"; readonly why: string };

export interface NamespaceParts {
  readonly tools: NamespaceTools;
  readonly clock: Clock;
  readonly log: Log;
  /** So many are kept ready, as many as there are launches at once, so that a launch need not wait. */
  readonly spare: number;
}

/** The same for all: each browser sees only its own. */
const proxyPort = 3128;
/** A start of Node.js on a busy machine is the most of it. */
const makeLimitMs = 10_000;
const enterLimitMs = 5_000;
/** Many launches may wait for one at once; less than a launch may take. */
const waitLimitMs = 20_000;

/**
 * Whether this process can give each browser a network namespace of its own, found out by making one. It
 * takes Linux, nsenter, a build of koffi for the platform, and either root with CAP_SYS_ADMIN and
 * CAP_NET_ADMIN or, for everybody else, unshare and a kernel and container that allow user namespaces.
 */
export async function findNamespaces({ tools, clock, log, spare }: NamespaceParts): Promise<Namespaces> {
  try {
    const maker = await tryNetworks(tools, clock);
    const namespaces = new SpareNamespaces({
      make: async () => listenerOf(await maker.make()),
      end: () => maker.end(),
      waitMs: waitLimitMs,
      size: spare,
      clock,
      log,
    });
    log.info({ tier: "namespace" }, "egress tier examined");
    return { kind: "available", openNamespace: () => namespaces.take(), close: () => namespaces.close() };
  } catch (error) {
    const why = textOf(error);
    // Root has what it takes everywhere but in a container that was given less.
    log[process.getuid?.() === 0 ? "warn" : "info"]({ tier: "proxy", why }, "egress tier examined");
    return { kind: "unavailable", why };
  }
}

/** The maker of the best network that can be had here. */
async function tryNetworks(tools: NamespaceTools, clock: Clock): Promise<NamespaceMaker> {
  const prefix = prefixOf(tools);
  const failures = new Set<string>();
  for (const network of networks) {
    const maker = makerOf(prefix, network, clock);
    try {
      await tryEntering(tools, listenerOf(await maker.make()));
      return maker;
    } catch (error) {
      await maker.end();
      failures.add(textOf(error));
    }
  }
  throw new Error([...failures].join("; "));
}

/** A container may allow unshare(2) and not setns(2); then no browser could be put into what was made. */
async function tryEntering(
  { nsenter = "" }: NamespaceTools,
  { namespace, userNamespace, close }: NamespaceListener,
): Promise<void> {
  const user = userNamespace === undefined ? [] : [`--user=${userNamespace}`, "--preserve-credentials"];
  const args = [...user, `--net=${namespace}`, "--", nsenter, "--version"];
  try {
    await promisify(execFile)(nsenter, args, { timeout: enterLimitMs, killSignal: "SIGKILL", env: {} });
  } finally {
    close();
  }
}

const makerOf = (
  prefix: readonly string[],
  network: readonly NetlinkMessage[],
  clock: Clock,
): NamespaceMaker => new NamespaceMaker({ prefix, network, clock, port: proxyPort, limitMs: makeLimitMs });

function prefixOf({ nsenter, unshare }: NamespaceTools): readonly string[] {
  if (process.platform !== "linux") throw new Error("network namespaces are Linux's");
  if (nsenter === undefined) throw new Error("nsenter (util-linux) is not installed");
  if (process.getuid?.() === 0) return [];
  if (unshare === undefined)
    throw new Error("without root it takes unshare (util-linux) and a private root for each browser");
  return [unshare, "--user", "--map-root-user", "--"];
}

function listenerOf({ server: inner, namespace, userNamespace }: MadeNamespace): NamespaceListener {
  const descriptors = new Set([namespace, ...(userNamespace === undefined ? [] : [userNamespace])]);
  let isTaken = false;
  const pathOf = (descriptor: number): string => `/proc/${process.pid}/fd/${descriptor}`;
  return {
    tier: "namespace",
    proxyUrl: `http://127.0.0.1:${proxyPort}`,
    namespace: pathOf(namespace),
    ...(userNamespace !== undefined && { userNamespace: pathOf(userNamespace) }),
    listen: (server) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        inner.ref();
        server.listen(inner, () => {
          server.off("error", reject);
          // It shares the socket, which is the server's from now on and closes with it.
          isTaken = true;
          resolve();
        });
      }),
    close() {
      if (!isTaken && inner.listening) inner.close();
      for (const each of descriptors) closeSync(each);
      descriptors.clear();
    },
  };
}
