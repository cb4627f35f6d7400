import { Seal } from "./base/seal.js";
import type { Config } from "./config.js";
import { encryptionKey } from "./config/kept.js";
import { makeOwn, type OwnPlace } from "./egress/own.js";
import { makeProbe } from "./egress/proxy-check.js";
import { makeResolve } from "./egress/resolve.js";
import type { Surroundings } from "./ground.js";
import { placesOf, redisPlace } from "./own-places.js";
import type { ProxyOperations } from "./registry/proxies.js";
import { makeProxyOperations } from "./registry/proxy-operations.js";
import type { State } from "./state.js";

export interface Proxies {
  readonly operations: ProxyOperations;
  /** Where this daemon listens: no check goes there from now on. */
  close(place: OwnPlace): Promise<void>;
}

/** The registry of proxies, wired by hand. */
export async function openProxies(config: Config, { clock, log, redisUrl }: Surroundings, state: State): Promise<Proxies> {
  const { homes, projects, proxies } = state;
  const { connectLimitMs, resolvers, checkUrl, checkLimitMs } = config.egress;
  const own = await placesOf(redisPlace(redisUrl.reveal()));
  const resolve = makeResolve({ clock, limitMs: connectLimitMs, ...(resolvers && { servers: resolvers }) });
  const operations = makeProxyOperations({
    homes, projects, store: proxies, seal: new Seal(await encryptionKey(config)), maxProxies: config.limits.maxProxies, log,
    probe: makeProbe({ clock, resolve, own: makeOwn(own), defaultUrl: checkUrl, limitMs: checkLimitMs }),
  });
  return { operations, close: async (place) => void own.push(...(await placesOf(place))) };
}
