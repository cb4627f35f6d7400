import type { Selector, SessionCreate, SessionPatch } from "../spec/bodies.js";
import type { Action } from "./policy.js";

/** A body that gives a browser a profile, proxies and more, or names one that something is done in. */
export type AttachingBody = Partial<SessionCreate> & Partial<SessionPatch> & { readonly browser_id?: string };

/** Something of a registry that a body names, and what has to be allowed on it. */
interface Attachment {
  readonly kind: "profiles" | "proxies" | "vaults";
  readonly selector: Selector;
  readonly needs: readonly Action[];
}

/**
 * Lists what a body names. An empty id or name asks for nothing. `isClosed`: it names something of which no
 * policy speaks.
 */
export function attachmentsOf(body: AttachingBody): {
  readonly isClosed: boolean;
  readonly named: readonly Attachment[];
} {
  const { extensions = [], vaults = [], telemetry, profile, proxy, proxy_id, network } = body;
  const isClosed = extensions.length > 0 || telemetry?.export !== undefined;
  const needs = needsOnProfile(profile?.save_changes === true);
  const routes = network && "proxy_routes" in network ? (network.proxy_routes ?? []) : [];
  const proxies = [
    ...(proxy ? [proxy] : []),
    ...(proxy_id ? [{ id: proxy_id }] : []),
    ...routes.map(({ proxy: on }) => on),
  ];
  return {
    isClosed,
    named: [
      ...(profile && isNamed(profile) ? [{ kind: "profiles", selector: profile, needs } as const] : []),
      ...proxies.filter(isNamed).map((selector) => ({ kind: "proxies", selector, needs: proxyUse }) as const),
      ...vaults.filter(isNamed).map((selector) => ({ kind: "vaults", selector, needs: vaultUse }) as const),
    ],
  };
}
/** What has to be allowed on the profile of a browser, whose end may save it. */
export const needsOnProfile = (isSaved: boolean): readonly Action[] =>
  isSaved ? ["profiles:use", "profiles:write"] : ["profiles:use"];
const proxyUse: readonly Action[] = ["proxies:use"];
const vaultUse: readonly Action[] = ["vaults:use"];

const isNamed = ({ id, name }: Selector): boolean => Boolean(id) || Boolean(name);

/** The body with ids in the place of the selectors. `proxy_id` is one already. */
export function withIds(body: AttachingBody, ids: ReadonlyMap<Selector, string>): AttachingBody {
  const byId = <Chosen extends Selector>(selector: Chosen): Chosen => {
    const id = ids.get(selector);
    if (id === undefined) return selector;
    const { name: _name, ...rest } = selector;
    return { ...rest, id } as Chosen;
  };
  const { profile, proxy, network, vaults } = body;
  const routes = network && "proxy_routes" in network ? network.proxy_routes : undefined;
  return {
    ...body,
    ...(profile && { profile: byId(profile) }),
    ...(proxy && { proxy: byId(proxy) }),
    ...(vaults && { vaults: vaults.map(byId) }),
    ...(routes && {
      network: { ...network, proxy_routes: routes.map((route) => ({ ...route, proxy: byId(route.proxy) })) },
    }),
  };
}
