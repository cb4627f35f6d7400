import { Seal } from "../base/crypto/seal.js";
import type { Config } from "../config/config.js";
import { encryptionKey } from "../config/kept.js";
import { makeReservedEndpoints, type Endpoint } from "../egress/reserved-endpoints.js";
import { makeProbe } from "../egress/proxy-check.js";
import { makeResolve } from "../egress/resolve.js";
import type { DaemonContext } from "./boot.js";
import { EndpointWatch, redisEndpoints } from "./reserved-endpoints.js";
import type { ProxyOperations } from "../registry/proxies/proxy.js";
import { makeProxyOperations } from "../registry/proxies/operations.js";
import type { Stores } from "./state.js";

export interface Proxies {
  readonly operations: ProxyOperations;
  /** Where this daemon listens: no check goes there from now on. */
  close(place: Endpoint): Promise<void>;
}

/** The registry of proxies, wired by hand. */
export async function openProxies(
  config: Config,
  { clock, log, redisUrl }: DaemonContext,
  stores: Stores,
): Promise<Proxies> {
  const { poolStore, projects, proxies } = stores;
  const { connectLimitMs, resolvers, checkUrl, checkLimitMs } = config.egress;
  const own = new EndpointWatch({ clock, log, sources: [stores.redisMembers, () => stores.nodes.living()] });
  await Promise.all(redisEndpoints(redisUrl.reveal()).map((place) => own.add(place)));
  const resolve = makeResolve({ clock, limitMs: connectLimitMs, ...(resolvers && { servers: resolvers }) });
  const probe = makeProbe({
    clock,
    resolve,
    reserved: makeReservedEndpoints(own.places),
    defaultUrl: checkUrl,
    limitMs: checkLimitMs,
  });
  const operations = makeProxyOperations({
    poolStore,
    projects,
    store: proxies,
    seal: new Seal(await encryptionKey(config)),
    maxProxies: config.limits.maxProxies,
    log,
    probe: async (...asked) => {
      await own.refresh();
      return await probe(...asked);
    },
  });
  return { operations, close: (place) => own.add(place) };
}
