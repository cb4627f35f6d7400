import { systemClock } from "../../../src/base/clock.js";
import type { BrowserId } from "../../../src/base/ids.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { Egress } from "../../../src/egress/egress.js";
import type { EgressParts, ProxyListener } from "../../../src/egress/parts.js";
import type { Namespaces } from "../../../src/egress/namespace/namespace.js";
import { makeReservedEndpoints } from "../../../src/egress/reserved-endpoints.js";
import { openPort } from "../../../src/egress/port.js";
import { makeResolve } from "../../../src/egress/resolve.js";
import { silentLog } from "../../support/browser/chromium-host.js";

export const columns = ["none", "proxy", "namespace"] as const;
export type Column = (typeof columns)[number];

/** How a browser gets out; without an egress nothing holds it. */
export interface EgressChoice {
  readonly name: Column;
  openEgress?(browser: BrowserId): Promise<Egress>;
}

export interface Tier extends EgressChoice {
  openEgress(browser: BrowserId): Promise<Egress>;
}

/** The tiers of this machine, with settings as in the daemon. */
export function tiersOf(namespaces: Namespaces, { canary }: BrowserHost): readonly Tier[] {
  const parts: EgressParts = {
    settings: {
      connectMs: 10_000,
      idleMs: 600_000,
      maxConnections: 512,
      bytesPerSecond: null,
      headerBytes: 256 * 1024,
    },
    resolve: makeResolve({ clock: systemClock, limitMs: 10_000 }),
    reserved: makeReservedEndpoints([{ host: "127.0.0.1", port: canary.port }]),
    proxyHosts: [],
    clock: systemClock,
    log: silentLog,
    meter: { request() {}, carried() {} },
  };
  const open = (browser: BrowserId, listener: ProxyListener): Promise<Egress> =>
    Egress.open({ browser, listener, rules: { allowed: null, privates: [], routes: [] } }, parts).catch(
      (error: unknown) => {
        listener.close();
        throw error;
      },
    );
  const proxy: Tier = { name: "proxy", openEgress: (browser) => open(browser, openPort()) };
  if (namespaces.kind === "unavailable") return [proxy];
  return [
    proxy,
    { name: "namespace", openEgress: async (browser) => open(browser, await namespaces.openNamespace()) },
  ];
}
