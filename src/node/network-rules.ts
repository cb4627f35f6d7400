import { findProxyId, type ProxyId } from "../base/ids.js";
import type { Rules, Upstream } from "../egress/rules.js";
import type { NetworkChange } from "../pool/browser.js";
import { type HostPattern, parseHostPattern } from "../pool/hosts.js";
import type { LaunchConfig } from "../pool/launch-config.js";
import { allowedHostsOf, proxyOf } from "../pool/network.js";

/** What rules are made from beside the configuration. */
export interface RuleSources {
  /** Open to browsers whose network does not say. */
  readonly privateHosts: readonly string[];
  /** A proxy of the registry, with its secrets; undefined where it is gone. Throws, with a text for people, where it cannot be opened. */
  openUpstream(id: ProxyId): Promise<Upstream | undefined>;
}

/** The rules of a browser: those of its launch, with what its lease has changed. Throws where a proxy cannot be opened. */
export async function rulesOf(config: LaunchConfig, sources: RuleSources, change?: NetworkChange): Promise<Rules> {
  const lease = change && { network: change };
  const allowed = allowedHostsOf(config, lease);
  // The modes `direct` and `default` are one here: there is no default proxy, in stealth neither.
  const { proxy_id: chosen } = proxyOf(config, lease);
  const { proxy_routes: routes = [], private_hosts: privates = sources.privateHosts } = config.network ?? {};
  const [upstream, onRoutes] = await Promise.all([
    chosen === undefined ? undefined : openUpstream(sources, chosen),
    Promise.all(routes.map(async ({ hosts, proxy }) => ({ hosts: patterns(hosts), upstream: await openUpstream(sources, proxy.id) }))),
  ]);
  return {
    allowed: allowed && patterns(allowed),
    privates: patterns(privates),
    routes: onRoutes,
    ...(upstream && { upstream }),
  };
}

/** Proxies are named by id from the moment a configuration is stored. One that is gone is no reason to go out another way. */
async function openUpstream(sources: RuleSources, text: string | undefined): Promise<Upstream> {
  const id = findProxyId(text ?? "");
  const upstream = id && (await sources.openUpstream(id));
  if (!upstream) throw new Error(`there is no proxy ${text}`);
  return upstream;
}

/** What was stored was parsed then: an entry that cannot be parsed now must not silently be left out of a list that restricts. */
const patterns = (list: readonly string[]): readonly HostPattern[] => list.map((text) => {
  const parsed = parseHostPattern(text, { withRanges: true });
  if (parsed.kind === "fault") throw new Error(`${text} ${parsed.message}`);
  return parsed.pattern;
});
