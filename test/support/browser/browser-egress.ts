import type { BrowserHost } from "../../../src/browser/host.js";
import type { BrowserProxy } from "../../../src/browser/chromium.js";
import { findTool } from "../../../src/browser/executable.js";
import { systemClock } from "../../../src/base/clock.js";
import { newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import { Egress } from "../../../src/egress/egress.js";
import { findNamespaces } from "../../../src/egress/namespace/namespace.js";
import { openPort } from "../../../src/egress/port.js";
import type { ProxyListener } from "../../../src/egress/parts.js";
import { makeResolve } from "../../../src/egress/resolve.js";
import type { Rules } from "../../../src/egress/rules.js";
import { silentLog } from "./chromium-host.js";

export type Tier = "namespace" | "proxy";

/** Network namespaces take root. */
export const tiers: readonly Tier[] = process.getuid?.() === 0 ? ["namespace", "proxy"] : ["proxy"];

export const publicRules: Rules = { allowed: null, privates: [], routes: [] };
/** Opens the machine's own loopback, as the configuration for a trial does. */
export const localRules: Rules = {
  ...publicRules,
  privates: [{ kind: "range", address: "127.0.0.0", prefix: 8 }],
};

export interface TestEgress {
  readonly egress: Egress;
  /** The proxy for `LaunchSpec.egress`, with nothing to prove. */
  readonly proxy: BrowserProxy;
}

export async function openListener(tier: Tier): Promise<ProxyListener> {
  if (tier === "proxy") return openPort();
  const [nsenter = "", unshare = ""] = await Promise.all([findTool("nsenter"), findTool("unshare")]);
  const found = await findNamespaces({
    tools: { nsenter, unshare },
    clock: systemClock,
    log: silentLog,
    spare: 0,
  });
  if (found.kind === "unavailable") throw new Error(found.why);
  try {
    return await found.openNamespace();
  } finally {
    await found.close();
  }
}

/** An egress for one browser of the host, whose canary is closed to it. */
export async function openTestEgress(
  tier: Tier,
  rules: Rules,
  { canary }: Pick<BrowserHost, "canary">,
): Promise<TestEgress> {
  const settings = {
    connectMs: 60_000,
    idleMs: 60_000,
    maxConnections: 100,
    bytesPerSecond: null,
    headerBytes: 65_536,
  };
  const egress = await Egress.open(
    { browser: newBrowserId(onDemandPartition), rules, listener: await openListener(tier) },
    {
      settings,
      clock: systemClock,
      log: silentLog,
      resolve: makeResolve({ clock: systemClock, limitMs: 2_000 }),
      reserved: { isOwn: (_address, port) => port === canary.port },
      proxyHosts: [],
      meter: { request() {}, carried() {} },
    },
  );
  const { proxyUrl, namespace, userNamespace } = egress;
  const places = {
    ...(namespace !== undefined && { namespace }),
    ...(userNamespace !== undefined && { userNamespace }),
  };
  return { egress, proxy: { proxyUrl, ...places } };
}
