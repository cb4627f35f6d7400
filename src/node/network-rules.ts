import { findProxyId, type ProxyId } from "../base/ids.js";
import type { Rules } from "../egress/rules.js";
import type { Upstream } from "../registry/proxies/proxy.js";
import type { NetworkChange } from "../pool/browser.js";
import { outsideCeiling } from "../base/net/private-hosts-ceiling.js";
import { type HostPattern, patternsOf } from "../base/net/hosts.js";
import type { LaunchTemplate } from "../spec/launch-template.js";
import { allowedHostsOf, proxyOf } from "../pool/network.js";

/** What rules are made from beside the configuration. */
export interface RuleSources {
  /** Open to browsers whose network does not say. */
  readonly privateHosts: readonly string[];
  /** What a network of its own may open at most, whenever it was stored. */
  readonly privateHostsCeiling: readonly HostPattern[];
  /**
   * A proxy of the registry, with its secrets; undefined where it is gone. Throws, with a text for people,
   * where it cannot be opened.
   */
  openUpstream(id: ProxyId): Promise<Upstream | undefined>;
}

/**
 * The rules of a browser: those of its launch, with what its lease has changed. Throws where a proxy cannot
 * be opened, or more is asked for than the operator lets be opened.
 */
export async function rulesOf(
  template: LaunchTemplate,
  sources: RuleSources,
  change?: NetworkChange,
): Promise<Rules> {
  const lease = change && { network: change };
  const allowed = allowedHostsOf(template, lease);
  // The modes `direct` and `default` are one here: there is no default proxy, in stealth neither.
  const { proxy_id: chosen } = proxyOf(template, lease);
  const { proxy_routes: routes = [], private_hosts: privates = sources.privateHosts } =
    template.network ?? {};
  const outside = outsideCeiling(template.network?.private_hosts ?? [], sources.privateHostsCeiling);
  if (outside.length > 0)
    throw new Error(`network.private_hosts: ${outside.join(", ")} is outside egress.private_hosts_ceiling`);
  const [upstream, onRoutes] = await Promise.all([
    chosen === undefined ? undefined : openUpstream(sources, chosen),
    Promise.all(
      routes.map(async ({ hosts, proxy }) => ({
        hosts: patternsOf(hosts),
        upstream: await openUpstream(sources, proxy.id),
      })),
    ),
  ]);
  return {
    allowed: allowed && patternsOf(allowed),
    privates: patternsOf(privates),
    routes: onRoutes,
    ...(upstream && { upstream }),
  };
}

/**
 * Proxies are named by id from the moment a configuration is stored. One that is gone is no reason to go out
 * another way.
 */
async function openUpstream(sources: RuleSources, text: string | undefined): Promise<Upstream> {
  const id = findProxyId(text ?? "");
  const upstream = id && (await sources.openUpstream(id));
  if (!upstream) throw new Error(`there is no proxy ${text}`);
  return upstream;
}
