import { isIPv4 } from "node:net";
import { makeRanges } from "../base/net/hosts.js";
import { isMetadata, nat64 } from "../base/net/metadata-addresses.js";

type Subnet = readonly [address: string, prefix: number];

/** IPv4 that is not the public internet (IANA special-purpose registry). */
const closedIpv4: readonly Subnet[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

/**
 * The only IPv6 that is public: global unicast, and NAT64, which is judged by the IPv4 address in its last 32
 * bits.
 */
const publicIpv6: readonly Subnet[] = [
  ["2000::", 3],
  ["64:ff9b::", 96],
];

/**
 * What is closed of those: IETF protocols with Teredo, ORCHID and benchmarks; documentation; 6to4, which may
 * carry any IPv4 address.
 */
const closedIpv6: readonly Subnet[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
  ...closedIpv4.map(([address, prefix]) => [nat64(address), 96 + prefix] as const),
];

const rangesOf = (subnets: readonly Subnet[]) =>
  makeRanges(subnets.map(([address, prefix]) => ({ address, prefix })));
const isInClosed = rangesOf([...closedIpv4, ...closedIpv6]);
const isInPublicIpv6 = rangesOf(publicIpv6);

/**
 * Whether an address is not on the public internet, so that only `private_hosts` opens it. `address` is in
 * canonical form, as `parseHost` gives it.
 */
export function isClosed(address: string): boolean {
  if (isMetadata(address)) return true;
  return isInClosed(address) || !(isIPv4(address) || isInPublicIpv6(address));
}

/**
 * Linux connects these to the machine itself, past any judgement of loopback and of own ports: never opened.
 */
export const isUnspecified = (address: string): boolean => address === "0.0.0.0" || address === "::";

/** `localhost` and all below it are this machine, whatever DNS says (RFC 6761). undefined: another name. */
export const loopbackOf = (name: string): readonly string[] | undefined =>
  name === "localhost" || name.endsWith(".localhost") ? ["127.0.0.1", "::1"] : undefined;
