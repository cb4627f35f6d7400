import { isIP, isIPv6 } from "node:net";
import { type HostPattern, groupsOf, matchesHost, parseHost, patternsOf } from "./hosts.js";

/** Where a request came from, as far as its connection and its headers tell. */
interface Origin {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** The most proxies in a row; a longer list was made up by somebody. */
const mostHops = 20;

/**
 * The address of whoever has sent a request. `X-Forwarded-For` is believed from the right, as long as the one
 * who has written an entry is a proxy of ours: anybody may send one with any entries on its left.
 */
export function makeClientAddress(trustedProxies: readonly string[]): (origin: Origin) => string {
  const trusted = patternsOf(trustedProxies);
  return ({ socket, headers }) => {
    const { remoteAddress = "" } = socket;
    // A socket tells one of IPv4 as it is.
    const peer = remoteAddress.includes(":") ? (addressIn(remoteAddress) ?? remoteAddress) : remoteAddress;
    if (!isAmong(trusted, peer)) return peer;
    return lastStranger(trusted, peer, [headers["x-forwarded-for"] ?? ""].flat().join(","));
  };
}

function lastStranger(trusted: readonly HostPattern[], peer: string, forwarded: string): string {
  let last = peer;
  for (const entry of forwarded.split(",").slice(-mostHops).toReversed()) {
    const address = addressIn(entry.trim());
    if (address === undefined) return last;
    if (!isAmong(trusted, address)) return address;
    last = address;
  }
  return last;
}

const isAmong = (trusted: readonly HostPattern[], address: string): boolean =>
  trusted.some((pattern) => matchesHost(pattern, { host: address, port: 0 }));

/** In canonical form, without the port and the brackets that some proxies write. */
function addressIn(text: string): string | undefined {
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  const read = isIP(bare) === 0 ? undefined : parseHost(bare);
  return read?.host;
}

/** Tells whose it is: one customer's network has at least 64 bits of IPv6 addresses to choose from. */
export const subscriberOf = (address: string): string =>
  isIPv6(address)
    ? `${groupsOf(address)
        .slice(0, 4)
        .map((group) => group.toString(16))
        .join(":")}::/64`
    : address;
