import { type HostPattern, parseHostPattern } from "../../../src/base/net/hosts.js";
import { closedRules, judgeTarget, type Route, type Rules } from "../../../src/egress/rules.js";
import type { Upstream } from "../../../src/registry/proxies/proxy.js";

export function patterns(...texts: string[]): HostPattern[] {
  return texts.map((text) => {
    const parsed = parseHostPattern(text, { withRanges: true });
    if (parsed.kind === "fault") throw new Error(parsed.message);
    return parsed.pattern;
  });
}

export const upstream = (id: string, ...bypass: string[]): Upstream => ({
  id,
  protocol: "http",
  host: "proxy.example",
  port: 3128,
  bypass: patterns(...bypass),
});
export const open: Rules = { ...closedRules, allowed: null };
export const allowing = (...texts: string[]): Rules => ({ ...open, allowed: patterns(...texts) });
export const opening = (...texts: string[]): Rules => ({ ...open, privates: patterns(...texts) });
export const through = (id: string, ...bypass: string[]): Rules => ({
  ...open,
  upstream: upstream(id, ...bypass),
});

/** What the names of this suite resolve to; others do not exist, and `failing.example` cannot be resolved. */
export const addresses: Record<string, readonly string[]> = {
  "public.example": ["8.8.8.8", "2606:4700::1"],
  "www.public.example": ["8.8.4.4"],
  "nat64.example": ["64:ff9b::808:808"],
  "private.example": ["10.0.0.5"],
  "mixed.example": ["8.8.8.8", "10.0.0.5"],
  "privates.example": ["10.0.0.5", "192.168.0.5"],
  "loop.example": ["127.0.0.1"],
  "six.example": ["::1"],
  "mapped.example": ["8.8.8.8", "::ffff:10.0.0.5"],
  "odd.example": ["8.8.8.8", "fe80::1%eth0"],
  "zero.example": ["0.0.0.0"],
  "metadata.example": ["169.254.169.254"],
  "half.example": ["8.8.8.8", "169.254.169.254"],
  "wire.example": ["168.63.129.16"],
  "own.example": ["8.8.8.8", "203.0.114.7"],
  "empty.example": [],
  localhost: ["8.8.8.8"],
  "app.localhost": ["8.8.8.8"],
  "xn--bcher-kva.example": ["8.8.8.8"],
};

/** Ports of the service on this machine: its API on loopback and on its public address. */
const reserved = {
  isOwn: (address: string, port: number) =>
    port === 4700 && ["127.0.0.1", "::1", "203.0.114.7"].includes(address),
};

export async function judged(
  rules: Rules,
  text: string,
): Promise<{ readonly way: Route; readonly resolved: readonly string[] }> {
  const [, host = "", port] = /^(.*?)(?: (\d+))?$/s.exec(text) ?? [];
  const resolved: string[] = [];
  const resolve = async (name: string): Promise<readonly string[]> => {
    resolved.push(name);
    if (name === "failing.example") throw new Error("ESERVFAIL");
    return addresses[name] ?? [];
  };
  return {
    way: await judgeTarget(rules, { host, port: Number(port ?? 443) }, { resolve, reserved }),
    resolved,
  };
}

/** `by` of a denial, `upstream id`, or the addresses to dial. */
export async function outcome(rules: Rules, text: string): Promise<string> {
  const { way } = await judged(rules, text);
  if (way.kind === "denied") return way.by;
  return way.kind === "upstream" ? `upstream ${way.upstream.id}` : way.addresses.join(" ");
}

/** What localhost stands for, whatever DNS says. */
export const local = "127.0.0.1 ::1";
/** A case of a table: what is judged under which rules, and what comes of it. */
export type Row = [name: string, rules: Rules, target: string, outcome: string];
