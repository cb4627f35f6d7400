import { isIP, isIPv4, isIPv6 } from "node:net";

/** One entry of allowed_hosts, private_hosts or proxy_routes.hosts. */
export type HostPattern =
  /**
   * `name`: ASCII (IDNA), lower case, no trailing dot. `isWild`: `*.example.com`, its subdomains and not
   * example.com itself.
   */
  | { readonly kind: "name"; readonly name: string; readonly isWild: boolean; readonly port?: number }
  /** `address`: canonical text (IPv6 compressed, lower case, no brackets; IPv4-mapped IPv6 as IPv4). */
  | { readonly kind: "address"; readonly address: string; readonly port?: number }
  /** CIDR; private_hosts only. */
  | { readonly kind: "range"; readonly address: string; readonly prefix: number };

/**
 * `text`: the normal form that is stored. `message` is to be read after the entry: "… must not have a
 * scheme".
 */
type ParsedPattern =
  | { readonly kind: "pattern"; readonly pattern: HostPattern; readonly text: string }
  | { readonly kind: "fault"; readonly message: string };

/** `name` in ASCII lower case without trailing dot, or a canonical `address`. */
interface ParsedHost {
  readonly kind: "name" | "address";
  readonly host: string;
}

const faulty = (message: string): ParsedPattern => ({ kind: "fault", message });

const starBeforeAddress = "must not have a * before an address";

/** Faults that show in the text before it is taken apart; the first that fits is told. */
const malformed: readonly (readonly [form: RegExp, message: string])[] = [
  [/^$/, "must not be empty"],
  [/^[a-z][a-z0-9+.-]*:\/\//i, "must not have a scheme"],
  [/@/, "must not have user information"],
  [/[/\\?#]/, "must not have a path, a query or a fragment"],
  [/[\s\p{Cc}]/u, "must not have spaces or control characters in it"],
  [/%/, "must not have a %: neither escapes nor IPv6 zones are taken"],
  [/^\*\.?(?::.*)?$/, "must name more than *: leave the list out to mean every host"],
  [/^\*\.\[/, starBeforeAddress],
  [/^(?!\*\.).*\*|\*.*\*/, "may have a * only as its whole first label, as in *.example.com"],
];

/**
 * `host`, `*.host`, an address, each with an optional `:port` (IPv6 then in brackets); with `withRanges` also
 * `address/prefix`.
 */
export function parseHostPattern(
  given: string,
  { withRanges }: { readonly withRanges: boolean },
): ParsedPattern {
  const text = given.trim();
  const [, before, prefix] = /^([^/]*)\/(\d+)$/.exec(text) ?? [];
  const base = before === undefined ? undefined : findAddress(before);
  if (base) return withRanges ? parseRange(base, Number(prefix)) : faulty("must not be a range");
  if (before !== undefined && withRanges) return faulty("must have a whole address before its prefix");
  const fault = malformed.find(([form]) => form.test(text));
  if (fault) return faulty(fault[1]);
  const { host, portText } = splitPort(text);
  if (portText === undefined) return parseBare(host);
  const isPort = /^[1-9]\d{0,4}$/.test(portText) && Number(portText) <= 65_535;
  return isPort
    ? parseBare(host, Number(portText))
    : faulty("must have a port from 1 to 65535 after its colon");
}

/**
 * Patterns of entries that were parsed before: one that cannot be parsed now must not silently be left out of
 * a list that restricts.
 */
export const patternsOf = (texts: readonly string[]): readonly HostPattern[] =>
  texts.map((text) => {
    const parsed = parseHostPattern(text, { withRanges: true });
    if (parsed.kind === "fault") throw new Error(`${text} ${parsed.message}`);
    return parsed.pattern;
  });

/** What has two colons and no brackets is an IPv6 address without a port. */
function splitPort(text: string): { readonly host: string; readonly portText?: string } {
  if (isIPv6(text)) return { host: text };
  const [, host = text, portText] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(text) ?? [];
  return portText === undefined ? { host } : { host, portText };
}

function parseBare(text: string, port?: number): ParsedPattern {
  const isWild = text.startsWith("*.");
  const bare = isWild ? text.slice(2) : text;
  const read = readHost(bare);
  if (read.kind === "fault") return read;
  const suffix = port === undefined ? "" : `:${port}`;
  const ofPort = port === undefined ? {} : { port };
  if (read.kind === "name") {
    return {
      kind: "pattern",
      pattern: { kind: "name", name: read.host, isWild, ...ofPort },
      text: `${isWild ? "*." : ""}${read.host}${suffix}`,
    };
  }
  if (isWild) return faulty(starBeforeAddress);
  // Requests may write 127.1 or 0177.0.0.1; a list is read by people, of whom some would take 010.0.0.1 for
  // 10.0.0.1.
  if (!findAddress(bare)) return faulty(`is read by browsers as the address ${read.host}: write that`);
  const shown = suffix && isIPv6(read.host) ? `[${read.host}]` : read.host;
  return {
    kind: "pattern",
    pattern: { kind: "address", address: read.host, ...ofPort },
    text: shown + suffix,
  };
}

/** `prefix` of an IPv4-mapped base counts the 96 bits before the IPv4 address. */
function parseRange({ written, address }: WrittenAddress, prefix: number): ParsedPattern {
  const bits = isIPv4(address) ? 32 : 128;
  const own = isIPv6(written) && bits === 32 ? prefix - 96 : prefix;
  if (own < 0 || own > bits) return faulty("must have a prefix that its address has bits for");
  return { kind: "pattern", pattern: { kind: "range", address, prefix: own }, text: `${address}/${own}` };
}

interface WrittenAddress {
  readonly written: string;
  readonly address: string;
}

/** Standard notation only: four decimal numbers without leading zeros, or IPv6 with or without brackets. */
function findAddress(text: string): WrittenAddress | undefined {
  const written = isIPv4(text.replace(/\.$/, ""))
    ? text.replace(/\.$/, "")
    : text.replace(/^\[(.*:.*)\]$/, "$1");
  const read = isIP(written) === 0 ? undefined : parseHost(written);
  return read && { written, address: read.host };
}

/**
 * What every reader reads alike, and most of what browsers send: nothing to parse, which costs ten times as
 * much.
 */
const plainName =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * A host as a request names it, read as browsers do (WHATWG URL): decimal, octal and hexadecimal IPv4 become
 * an address, other scripts ASCII. undefined: not a host. Escapes and IPv6 zones are none.
 */
export function parseHost(text: string): ParsedHost | undefined {
  if (isIPv4(text)) return { kind: "address", host: text };
  if (plainName.test(text) && !text.includes("xn--")) return { kind: "name", host: text };
  if (malformed.some(([form]) => form.test(text))) return undefined;
  const read = readHost(text);
  return read.kind === "fault" ? undefined : read;
}

function readHost(text: string): ParsedHost | (ParsedPattern & { readonly kind: "fault" }) {
  const fault = (message: string) => ({ kind: "fault", message }) as const;
  const authority = isIPv6(text) ? `[${text}]` : text;
  const isBracketed = /^\[.*\]$/.test(authority);
  if ((!isBracketed && authority.includes(":")) || !URL.canParse(`http://${authority}`))
    return fault("is neither a host name nor an address");
  const { hostname } = new URL(`http://${authority}`);
  if (isBracketed) return { kind: "address", host: unmapped(hostname.slice(1, -1)) };
  if (isIPv4(hostname)) return { kind: "address", host: hostname };
  const name = hostname.replace(/\.$/, "");
  if (name.length > 253) return fault("must have at most 253 characters (in ASCII)");
  const labels = name.split(".");
  if (labels.includes("")) return fault("must not have an empty label");
  if (labels.some(({ length }) => length > 63))
    return fault("must have at most 63 characters (in ASCII) in each label");
  if (!/^[a-z0-9._-]+$/.test(name)) return fault("is neither a host name nor an address");
  return { kind: "name", host: name };
}

/** ::ffff:102:304 reaches 1.2.3.4, so it is judged as that. */
function unmapped(address: string): string {
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(address) ?? [];
  if (high === undefined || low === undefined) return address;
  return [high, low]
    .map((group) => Number.parseInt(group, 16))
    .flatMap((group) => [group >> 8, group & 255])
    .join(".");
}

/** `host` as `parseHost` gives it. A pattern without a port fits every port, and no name fits an address. */
export function matchesHost(
  pattern: HostPattern,
  { host, port }: { readonly host: string; readonly port: number },
): boolean {
  if (pattern.kind === "range") return isWithin(pattern, host);
  if (pattern.port !== undefined && pattern.port !== port) return false;
  if (pattern.kind === "address") return pattern.address === host;
  return pattern.isWild ? host.endsWith(`.${pattern.name}`) : host === pattern.name;
}

/** Compiled once each: patterns are judged on every request. */
const compiled = new WeakMap<HostPattern, (address: string) => boolean>();

function isWithin(range: HostPattern & { readonly kind: "range" }, host: string): boolean {
  const contains = compiled.get(range) ?? makeRanges([range]);
  compiled.set(range, contains);
  return isIP(host) !== 0 && contains(host);
}

/**
 * Tells whether one of `ranges` holds an address, both canonical. Unlike those of BlockList (node:net), IPv6
 * ranges hold no IPv4.
 */
export function makeRanges(
  ranges: readonly { readonly address: string; readonly prefix: number }[],
): (address: string) => boolean {
  const all = ranges.map(({ address, prefix }) => ({ groups: groupsOf(address), prefix }));
  return (address) => {
    const groups = groupsOf(address);
    return all.some(
      (range) =>
        range.groups.length === groups.length &&
        range.groups.every((group, index) => {
          const bits = Math.min(16, Math.max(0, range.prefix - 16 * index));
          return (group ^ (groups[index] ?? 0)) >> (16 - bits) === 0;
        }),
    );
  };
}

/** Splits an address into groups of 16 bits: two for IPv4, eight for IPv6. */
export function groupsOf(address: string): readonly number[] {
  if (isIPv4(address)) {
    const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
    return [(a << 8) | b, (c << 8) | d];
  }
  const [left = [], right = []] = address
    .split("::")
    .map((part) => (part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16))));
  return [...left, ...Array.from({ length: 8 - left.length - right.length }, () => 0), ...right];
}
