import { networkInterfaces } from "node:os";
import { isLoopback } from "../base/net/host-check.js";
import { isProxyAddress, proxyEndpoints } from "./port.js";
import { isUnspecified } from "./ranges.js";
import type { ReservedEndpoints } from "./rules.js";

/** A place where Remuda itself listens. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

const isWild = (host: string): boolean => isUnspecified(host) || host === "";

const localAddresses = (): readonly string[] =>
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .map(({ address }) => address.split("%", 1)[0] ?? address);

/**
 * Whether an address names this machine: all of loopback, the unspecified address (which connects to
 * loopback), each interface.
 */
const isThisMachine = (address: string): boolean =>
  isLoopback(address) || isUnspecified(address) || localAddresses().includes(address);

/**
 * The addresses and ports that no browser may reach, whatever its rules say: API and gateway, Redis, every
 * live proxy, those of other daemons on this machine included. A place on this machine is closed on all of
 * its addresses; hosts are given as addresses (`localhost` for loopback). Proxies of the block are reached by
 * their own addresses alone: whatever else has such a port is a host as any other.
 */
export function makeReservedEndpoints(places: readonly Endpoint[]): ReservedEndpoints {
  const isAt = (place: Endpoint, address: string): boolean => {
    const host = place.host === "localhost" ? "127.0.0.1" : place.host;
    return host === address || ((isWild(host) || isThisMachine(host)) && isThisMachine(address));
  };
  return {
    isOwn(address, port) {
      if (isProxyAddress(address)) return true;
      const isThere = (place: Endpoint): boolean => place.port === port && isAt(place, address);
      return (
        [...proxyEndpoints].some((place) => !isProxyAddress(place.host) && isThere(place)) ||
        places.some(isThere)
      );
    },
  };
}
