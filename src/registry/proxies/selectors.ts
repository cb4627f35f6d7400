import { type Done, type Refusal, refusal } from "../../base/errors.js";
import type { ProxyId } from "../../base/ids.js";
import type { Network, ProxyChoice, Selector } from "../../spec/bodies.js";
import { fieldFault, type FieldFaults } from "../../spec/field-checks.js";
import type { LaunchTemplate } from "../../spec/launch-template.js";

/**
 * The proxy that a selector means. Names need not be unique: one that several proxies have means none of
 * them.
 */
export type ProxyRef =
  | { readonly kind: "found"; readonly id: ProxyId; readonly name?: string }
  | { readonly kind: "unknown" }
  | { readonly kind: "ambiguous"; readonly count: number };

/** The proxies of the project, as specifications of pools and bodies of sessions refer to them. */
export interface ProxyRefs {
  resolve(selector: Selector): Promise<ProxyRef>;
}

/** The fields of a body that name proxies. */
interface ProxyNaming {
  readonly proxy_id?: string | undefined;
  readonly proxy?: ProxyChoice | undefined;
  readonly network?: Network | undefined;
}

/**
 * `body` with each proxy named by its id, and a fault for each that is not there or not one. What has not
 * exactly one of id and name is left as it is: that is a fault of the body, told with its others.
 */
export async function resolveProxies<Body extends ProxyNaming>(
  refs: ProxyRefs,
  body: Body,
): Promise<{ body: Body; faults: FieldFaults }> {
  const faults: FieldFaults = [];
  const resolved = async <Chosen extends Selector>(
    field: string,
    chosen: Chosen,
  ): Promise<Chosen | { id: string }> => {
    if (Boolean(chosen.id) === Boolean(chosen.name)) return chosen;
    const found = await refs.resolve(chosen);
    if (found.kind === "found") return { id: found.id };
    fieldFault(
      faults,
      field,
      found.kind === "unknown"
        ? "there is no such proxy"
        : `${found.count} proxies have this name; choose one by its id`,
    );
    return chosen;
  };
  const { proxy_id, proxy, network } = body;
  if (proxy_id) await resolved("proxy_id", { id: proxy_id });
  const routes =
    network?.proxy_routes &&
    (await Promise.all(
      network.proxy_routes.map(async (route, at) => ({
        ...route,
        proxy: await resolved(`network.proxy_routes[${at}].proxy`, route.proxy),
      })),
    ));
  return {
    body: {
      ...body,
      ...(proxy ? { proxy: proxy.mode ? proxy : await resolved("proxy", proxy) } : {}),
      ...(routes ? { network: { ...network, proxy_routes: routes } } : {}),
    },
    faults,
  };
}

/** An outcome, unless there are more faults: then all of them together. */
export function withFaults<Value>(
  outcome: Done<Value> | Refusal,
  faults: FieldFaults,
): Done<Value> | Refusal {
  if (faults.length === 0) return outcome;
  const own = outcome.kind === "refused" ? (outcome.details ?? []) : [];
  return refusal("bad_request", { details: [...own, ...faults] });
}

type ResolvedProxies = Pick<LaunchTemplate, "proxy_id" | "network">;

/** Ids of all proxies that a specification names, its proxies being resolved. */
export const namedProxies = ({ proxy_id, network }: ResolvedProxies): readonly string[] => [
  ...(proxy_id === undefined ? [] : [proxy_id]),
  ...(network?.proxy_routes ?? []).flatMap(({ proxy }) => proxy.id ?? []),
];

/**
 * A session's `proxy` and its deprecated echo `proxy_id` (docs/api.md#sessions); `name`: what the proxy is
 * called now.
 */
export function proxyFields(
  { proxy_id, proxy_mode }: Pick<LaunchTemplate, "proxy_id" | "proxy_mode">,
  name?: string,
): {
  readonly proxy?:
    | { readonly mode: NonNullable<LaunchTemplate["proxy_mode"]> }
    | { readonly id: string; readonly name?: string };
  readonly proxy_id?: string;
} {
  if (proxy_id !== undefined)
    return { proxy: { id: proxy_id, ...(name === undefined ? {} : { name }) }, proxy_id };
  return proxy_mode === undefined ? {} : { proxy: { mode: proxy_mode } };
}
