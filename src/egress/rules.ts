import { isIP } from "node:net";
import { type HostPattern, matchesHost, parseHost } from "../base/net/hosts.js";
import type { Upstream } from "../registry/proxies/proxy.js";
import { isMetadata } from "../base/net/metadata-addresses.js";
import { isClosed, isUnspecified, loopbackOf } from "./ranges.js";
import type { Resolve } from "./resolve.js";

/** What a browser may reach, and how. */
export interface Rules {
  /** null allows every public host. */
  readonly allowed: readonly HostPattern[] | null;
  /** Private destinations that are open, directly and never through an upstream. */
  readonly privates: readonly HostPattern[];
  readonly routes: readonly { readonly hosts: readonly HostPattern[]; readonly upstream: Upstream }[];
  /** The upstream of all targets that no route names; absent: they are reached directly. */
  readonly upstream?: Upstream;
}

/** These rules allow nothing. */
export const closedRules: Rules = { allowed: [], privates: [], routes: [] };

export type DeniedBy =
  | "allowed_hosts"
  | "private"
  | "metadata"
  | "remuda"
  | "unresolved"
  | "closed"
  | "limit";

export type Route =
  /** `message` is for the page that asked: it tells no address that the page did not name. */
  | { readonly kind: "denied"; readonly by: DeniedBy; readonly message: string }
  /** `addresses`: checked, in order to dial. */
  | { readonly kind: "direct"; readonly addresses: readonly string[] }
  | { readonly kind: "upstream"; readonly upstream: Upstream };

/** Ports of Remuda itself (API, gateway, Redis, proxies), always closed. `address` in canonical form. */
export interface ReservedEndpoints {
  isOwn(address: string, port: number): boolean;
}

export interface TargetHost {
  readonly host: string;
  readonly port: number;
}

/** An open tunnel: `address` where it was dialled directly, `upstreamId` where an upstream carries it. */
export interface DialledTarget extends TargetHost {
  readonly address?: string;
  readonly upstreamId?: string;
}

const messages = {
  allowed_hosts: "The host is not in allowed_hosts",
  private: "The host is private, and private_hosts does not name it",
  metadata: "The host serves a cloud's metadata, and private_hosts does not name its exact address",
  remuda: "The port belongs to the service itself",
  unresolved: "The name has no address",
  closed: "The browser may reach nothing now",
  limit: "The browser has reached a limit",
} as const satisfies Record<DeniedBy, string>;

const denied = (by: DeniedBy): Route => ({ kind: "denied", by, message: messages[by] });

/**
 * Judges one target: the name by the rules, then every address it has, resolved once, here. Where an upstream
 * carries it the name is not resolved here: what it reaches is then the upstream's to judge. A closed
 * address, `localhost` and a host that `privates` names never go upstream.
 */
export async function judgeTarget(
  rules: Rules,
  target: TargetHost,
  { resolve, reserved }: { resolve: Resolve; reserved: ReservedEndpoints },
): Promise<Route> {
  const read = parseHost(target.host);
  if (!read) return denied("unresolved");
  const asked = { host: read.host, port: target.port };
  const known = read.kind === "address" ? [read.host] : loopbackOf(read.host);
  if (known?.some((address) => reserved.isOwn(address, asked.port))) return denied("remuda");
  const byName = judgeName(rules, asked);
  if (byName) return denied(byName);
  const upstream = upstreamFor(rules, asked);
  if (upstream) return { kind: "upstream", upstream };
  const addresses = known ?? (await resolve(asked.host).catch(() => []));
  return judgeAddresses({ rules, asked, reserved }, addresses.map(canonical));
}

/** A resolver's answer that is no address is judged as one that is never open. */
const canonical = (address: string): string => parseHost(address)?.host ?? "::";

function judgeName({ allowed }: Rules, asked: TargetHost): DeniedBy | undefined {
  if (allowed === null || names(allowed, asked)) return undefined;
  return allowed.length === 0 ? "closed" : "allowed_hosts";
}

const names = (patterns: readonly HostPattern[], target: TargetHost): boolean =>
  patterns.some((pattern) => matchesHost(pattern, target));

/**
 * The first route that names the host decides; what is private, and what the chosen upstream's bypass names,
 * goes directly.
 */
function upstreamFor(rules: Rules, asked: TargetHost): Upstream | undefined {
  const chosen = rules.routes.find(({ hosts }) => names(hosts, asked))?.upstream ?? rules.upstream;
  if (!chosen || names(chosen.bypass, asked) || names(rules.privates, asked) || loopbackOf(asked.host))
    return undefined;
  return isIP(asked.host) === 0 || judgeAddress(rules, asked, asked.host) === "public" ? chosen : undefined;
}

function judgeAddresses(
  { rules, asked, reserved }: { rules: Rules; asked: TargetHost; reserved: ReservedEndpoints },
  addresses: readonly string[],
): Route {
  if (addresses.length === 0) return denied("unresolved");
  if (addresses.some((address) => reserved.isOwn(address, asked.port))) return denied("remuda");
  const judged = addresses.map((address) => ({ address, is: judgeAddress(rules, asked, address) }));
  for (const by of ["metadata", "private"] as const) {
    // One closed address closes the name, because rebinding shows as a mix of open and closed addresses.
    if (judged.some(({ is }) => is === by)) return denied(by);
  }
  const opened = judged.filter(({ is }) => is === "opened");
  return { kind: "direct", addresses: (opened.length > 0 ? opened : judged).map(({ address }) => address) };
}

/** `opened`: named by `privates`, whether it is closed otherwise or not. */
function judgeAddress(
  { privates }: Rules,
  asked: TargetHost,
  address: string,
): "public" | "opened" | "metadata" | "private" {
  if (isUnspecified(address)) return "private";
  const dialled = { host: address, port: asked.port };
  const naming = privates.filter((pattern) => matchesHost(pattern, asked) || matchesHost(pattern, dialled));
  if (isMetadata(address)) return naming.some(({ kind }) => kind === "address") ? "opened" : "metadata";
  if (naming.length > 0) return "opened";
  return isClosed(address) ? "private" : "public";
}

/**
 * Judges an open tunnel again after a swap of rules: by its name, and by the address or the upstream it was
 * dialled through.
 */
export function isStillAllowed(rules: Rules, { host, port, address, upstreamId }: DialledTarget): boolean {
  const read = parseHost(host);
  if (!read) return false;
  const asked = { host: read.host, port };
  if (judgeName(rules, asked)) return false;
  if (upstreamFor(rules, asked)?.id !== upstreamId) return false;
  const dialled = address ?? (read.kind === "address" ? read.host : undefined);
  return (
    dialled === undefined || ["public", "opened"].includes(judgeAddress(rules, asked, canonical(dialled)))
  );
}

/** What says where a proxy of the registry may be. */
export interface ProxyHostParts {
  readonly resolve: Resolve;
  readonly reserved: ReservedEndpoints;
  /** Private places that the operator has opened to proxies. Pages reach nothing by them. */
  readonly proxyHosts: readonly HostPattern[];
}

/** To be read after what names the proxy. */
const closedProxy: Partial<Record<DeniedBy, string>> = {
  private: "is at a private address, and egress.proxy_hosts does not name it",
  metadata:
    "is at an address that serves a cloud's metadata, and egress.proxy_hosts does not name that exact address",
  remuda: "is a port of the service itself",
};

const rulesOfProxies = (proxyHosts: readonly HostPattern[]): Rules => ({
  allowed: null,
  privates: proxyHosts,
  routes: [],
});

/** Addresses to dial a proxy at, or why it is not dialled. */
type ProxyVerdict =
  | { readonly kind: "open"; readonly addresses: readonly string[] }
  | { readonly kind: "closed"; readonly why: string };

/** Judges where a proxy is by the rules that hold for browsers: its name, then every address it has now. */
export async function judgeProxy(
  place: TargetHost,
  { proxyHosts, resolve, reserved }: ProxyHostParts,
  signal?: AbortSignal,
): Promise<ProxyVerdict> {
  const route = await judgeTarget(rulesOfProxies(proxyHosts), place, {
    reserved,
    resolve: (name) => resolve(name, signal),
  });
  if (route.kind === "direct") return { kind: "open", addresses: route.addresses };
  return { kind: "closed", why: whyOf(route) ?? "has a name that does not resolve" };
}

/** Which ports are the service's own is not told to whoever registers a proxy. */
const noneReserved: ReservedEndpoints = { isOwn: () => false };

/**
 * Why no proxy may be at a place, as far as the text of its host tells: a name is judged whenever the proxy
 * is dialled. Undefined where nothing is wrong with it.
 */
export function whyProxyClosed(asked: TargetHost, proxyHosts: readonly HostPattern[]): string | undefined {
  const known = isIP(asked.host) ? [asked.host] : loopbackOf(asked.host);
  return (
    known &&
    whyOf(judgeAddresses({ rules: rulesOfProxies(proxyHosts), asked, reserved: noneReserved }, known))
  );
}

const whyOf = (route: Route): string | undefined =>
  route.kind === "denied" ? closedProxy[route.by] : undefined;
