import { type HostPattern, matchesHost, parseHostPattern } from "./hosts.js";
import { isMetadata } from "./metadata-addresses.js";

type NamePattern = HostPattern & { readonly kind: "name" };
type AddressPattern = HostPattern & { readonly kind: "address" };
type RangePattern = HostPattern & { readonly kind: "range" };

/**
 * Whether all that `entry` opens is opened by one entry of the ceiling. Two that cover it only together do
 * not count.
 */
function isUnderCeiling(entry: HostPattern, ceiling: readonly HostPattern[]): boolean {
  if (ceiling.some((bound) => holds(bound, entry))) return true;
  // `localhost` and all below it are these two addresses, whatever DNS says (RFC 6761).
  if (entry.kind !== "name" || !(entry.name === "localhost" || entry.name.endsWith(".localhost")))
    return false;
  const port = entry.port === undefined ? {} : { port: entry.port };
  return ["127.0.0.1", "::1"].every((address) =>
    ceiling.some((bound) => holds(bound, { kind: "address", address, ...port })),
  );
}

/**
 * Entries of `private_hosts`, as they are stored, that the ceiling does not hold; one that cannot be read is
 * outside.
 */
export const outsideCeiling = (
  entries: readonly string[],
  ceiling: readonly HostPattern[],
): readonly string[] =>
  entries.filter((text) => {
    const parsed = parseHostPattern(text, { withRanges: true });
    return parsed.kind === "fault" || !isUnderCeiling(parsed.pattern, ceiling);
  });

function holds(bound: HostPattern, entry: HostPattern): boolean {
  switch (entry.kind) {
    case "name":
      return bound.kind === "name" && fitsPort(bound, entry) && holdsName(bound, entry);
    case "address":
      return holdsAddress(bound, entry);
    case "range":
      return holdsRange(bound, entry);
  }
}

const fitsPort = (bound: NamePattern | AddressPattern, entry: NamePattern | AddressPattern): boolean =>
  bound.port === undefined || bound.port === entry.port;

function holdsName(bound: NamePattern, entry: NamePattern): boolean {
  if (bound.name === entry.name) return bound.isWild === entry.isWild;
  return bound.isWild && entry.name.endsWith(`.${bound.name}`);
}

/**
 * An exact address opens a cloud's metadata, which a range never does: so the ceiling has to name it exactly
 * as well.
 */
function holdsAddress(bound: HostPattern, entry: AddressPattern): boolean {
  if (bound.kind === "address") return bound.address === entry.address && fitsPort(bound, entry);
  return (
    bound.kind === "range" &&
    !isMetadata(entry.address) &&
    matchesHost(bound, { host: entry.address, port: 0 })
  );
}

/** A range opens every port of its addresses. */
function holdsRange(bound: HostPattern, { address, prefix }: RangePattern): boolean {
  if (bound.kind === "address")
    return bound.port === undefined && bound.address === address && prefix === bitsOf(address);
  return bound.kind === "range" && bound.prefix <= prefix && matchesHost(bound, { host: address, port: 0 });
}

const bitsOf = (address: string): number => (address.includes(":") ? 128 : 32);
