import { describe, expect, test } from "vitest";
import {
  closedRules,
  type DialledTarget,
  isStillAllowed,
  judgeTarget,
  type Rules,
  type Route,
} from "../../src/egress/rules.js";
import type { Upstream } from "../../src/registry/proxies/proxy.js";
import { type HostPattern, parseHostPattern } from "../../src/base/net/hosts.js";

function patterns(...texts: string[]): HostPattern[] {
  return texts.map((text) => {
    const parsed = parseHostPattern(text, { withRanges: true });
    if (parsed.kind === "fault") throw new Error(parsed.message);
    return parsed.pattern;
  });
}

const upstream = (id: string, ...bypass: string[]): Upstream => ({
  id,
  protocol: "http",
  host: "proxy.example",
  port: 3128,
  bypass: patterns(...bypass),
});
const open: Rules = { ...closedRules, allowed: null };
const allowing = (...texts: string[]): Rules => ({ ...open, allowed: patterns(...texts) });
const opening = (...texts: string[]): Rules => ({ ...open, privates: patterns(...texts) });
const through = (id: string, ...bypass: string[]): Rules => ({ ...open, upstream: upstream(id, ...bypass) });

/** What the names of this suite resolve to; others do not exist, and `failing.example` cannot be resolved. */
const addresses: Record<string, readonly string[]> = {
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

async function judged(
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
async function outcome(rules: Rules, text: string): Promise<string> {
  const { way } = await judged(rules, text);
  if (way.kind === "denied") return way.by;
  return way.kind === "upstream" ? `upstream ${way.upstream.id}` : way.addresses.join(" ");
}

const local = "127.0.0.1 ::1";
type Row = [name: string, rules: Rules, target: string, outcome: string];

describe("allowed_hosts", () => {
  test.each<Row>([
    ["none sent: every public host", open, "public.example", "8.8.8.8 2606:4700::1"],
    ["none sent: every public address", open, "8.8.8.8", "8.8.8.8"],
    ["closed: nothing", closedRules, "public.example", "closed"],
    ["closed: no address either", closedRules, "8.8.8.8", "closed"],
    ["the host", allowing("public.example"), "public.example", "8.8.8.8 2606:4700::1"],
    [
      "one of several",
      allowing("a.example", "*.b.example", "public.example"),
      "public.example",
      "8.8.8.8 2606:4700::1",
    ],
    [
      "in upper case with a trailing dot",
      allowing("public.example"),
      "PUBLIC.example.",
      "8.8.8.8 2606:4700::1",
    ],
    ["in another script", allowing("bücher.example"), "BÜCHER.example", "8.8.8.8"],
    ["another host", allowing("public.example"), "private.example", "allowed_hosts"],
    ["a subdomain of an exact host", allowing("public.example"), "www.public.example", "allowed_hosts"],
    ["a subdomain of a wildcard", allowing("*.public.example"), "www.public.example", "8.8.4.4"],
    ["a wildcard's own domain", allowing("*.public.example"), "public.example", "allowed_hosts"],
    ["the port", allowing("public.example:443"), "public.example 443", "8.8.8.8 2606:4700::1"],
    ["another port", allowing("public.example:443"), "public.example 80", "allowed_hosts"],
    ["the address", allowing("8.8.8.8"), "8.8.8.8", "8.8.8.8"],
    ["the address in decimal", allowing("8.8.8.8"), "134744072", "8.8.8.8"],
    ["the address in the dress of IPv6", allowing("8.8.8.8"), "[::ffff:8.8.8.8]", "8.8.8.8"],
    ["not the address of a name that is allowed", allowing("public.example"), "8.8.8.8", "allowed_hosts"],
    ["not a name with an address that is allowed", allowing("8.8.8.8"), "public.example", "allowed_hosts"],
    [
      "a private host that is allowed but not open",
      allowing("private.example"),
      "private.example",
      "private",
    ],
    [
      "a private host that is open but not allowed",
      { ...allowing("public.example"), privates: patterns("10.0.0.0/8") },
      "private.example",
      "allowed_hosts",
    ],
    [
      "a private host that is both",
      { ...allowing("private.example"), privates: patterns("10.0.0.0/8") },
      "private.example",
      "10.0.0.5",
    ],
    [
      "a private address that is open but not allowed",
      { ...allowing("private.example"), privates: patterns("10.0.0.0/8") },
      "10.0.0.5",
      "allowed_hosts",
    ],
    [
      "a private address that is both",
      { ...allowing("10.0.0.5"), privates: patterns("10.0.0.0/8") },
      "10.0.0.5",
      "10.0.0.5",
    ],
  ])("%s", async (...[, rules, target, then]) => expect(await outcome(rules, target)).toBe(then));

  test("a name that is denied is never asked of DNS", async () => {
    expect((await judged(allowing("public.example"), "secret.exfiltrated.example")).resolved).toEqual([]);
  });
});

describe("private destinations are closed whatever names them", () => {
  test.each<[string, string]>([
    ["a name", "private.example"],
    ["a mix of public and private", "mixed.example"],
    ["a mix with IPv4-mapped", "mapped.example"],
    ["an answer that is no address", "odd.example"],
    ["loopback by name", "loop.example"],
    ["IPv6 loopback by name", "six.example"],
    ["an address that means any", "zero.example"],
    ["localhost", "localhost"],
    ["localhost with a trailing dot", "LOCALHOST."],
    ["below localhost", "app.localhost"],
    ["loopback", "127.0.0.1"],
    ["other loopback", "127.0.0.2"],
    ["decimal", "2130706433"],
    ["octal", "0177.0.0.1"],
    ["hexadecimal", "0x7f.1"],
    ["short", "127.1"],
    ["0.0.0.0", "0.0.0.0"],
    ["0", "0"],
    ["0/8", "0.1.2.3"],
    ["::", "[::]"],
    ["::1", "[::1]"],
    ["IPv4-mapped", "[::ffff:127.0.0.1]"],
    ["IPv4-compatible", "[::127.0.0.1]"],
    ["NAT64", "[64:ff9b::127.0.0.1]"],
    ["local NAT64", "[64:ff9b:1::7f00:1]"],
    ["6to4", "[2002:7f00:1::]"],
    ["Teredo", "[2001:0:808:808::80ff:fffe]"],
    ["private", "192.168.1.1"],
    ["carrier-grade NAT", "100.64.0.1"],
    ["multicast", "224.0.0.251"],
    ["broadcast", "255.255.255.255"],
    ["unique local", "[fd12::1]"],
    ["link-local", "[fe80::1]"],
  ])("%s", async (_, target) => {
    expect(await outcome(open, target)).toBe("private");
    expect(await outcome(through("p"), target)).toBe(
      addresses[target] && !target.endsWith("localhost") ? "upstream p" : "private",
    );
  });

  test.each<[string, string]>([
    ["no such name", "none.example"],
    ["an empty answer", "empty.example"],
    ["a name that cannot be resolved", "failing.example"],
    ["300 characters", "a.".repeat(149) + "aa"],
    ["an escape", "%6cocalhost"],
    ["escaped digits", "127.0.0.%31"],
    ["a zone", "[fe80::1%25eth0]"],
    ["nothing", ""],
    ["a dot", "."],
    ["two trailing dots", "localhost.."],
    ["a host with a port in it", "[::1]:4700"],
    ["a line break", "a.example\nb.example"],
  ])("%s is unresolved, also where an upstream would take every name", async (_, target) => {
    expect(await outcome(open, target)).toBe("unresolved");
    if (!/^(?:none|empty|failing)\./.test(target))
      expect(await outcome(through("p"), target)).toBe("unresolved");
  });

  test.each(["localhost", "app.localhost", "LOCALHOST."])("%s is never asked of DNS", async (target) => {
    expect(await judged(opening("127.0.0.0/8", "::1"), target)).toEqual({
      way: { kind: "direct", addresses: ["127.0.0.1", "::1"] },
      resolved: [],
    });
  });

  test("a public NAT64 address is public", async () =>
    expect(await outcome(open, "nat64.example")).toBe("64:ff9b::808:808"));
});

describe("private_hosts opens", () => {
  test.each<Row>([
    ["an address", opening("10.0.0.5"), "10.0.0.5", "10.0.0.5"],
    ["not its neighbour", opening("10.0.0.5"), "10.0.0.6", "private"],
    ["an address on its port", opening("127.0.0.1:3000"), "127.0.0.1 3000", "127.0.0.1"],
    ["not on another", opening("127.0.0.1:3000"), "127.0.0.1 3001", "private"],
    ["a range", opening("10.0.0.0/8"), "10.9.9.9", "10.9.9.9"],
    ["not beyond it", opening("10.0.0.0/8"), "192.168.0.1", "private"],
    ["an IPv6 range", opening("fd00::/8"), "[fd12::1]", "fd12::1"],
    ["a name by its address", opening("10.0.0.5"), "private.example", "10.0.0.5"],
    ["a name by its range", opening("10.0.0.0/8"), "private.example", "10.0.0.5"],
    ["a name", opening("private.example"), "private.example", "10.0.0.5"],
    ["a wildcard", opening("*.example"), "private.example", "10.0.0.5"],
    ["not the address of a name", opening("private.example"), "10.0.0.5", "private"],
    ["localhost by name", opening("localhost"), "localhost", local],
    ["below localhost by wildcard", opening("*.localhost"), "app.localhost", local],
    ["not localhost by its subdomains", opening("*.localhost"), "localhost", "private"],
    ["localhost by both addresses", opening("127.0.0.1", "::1"), "localhost", local],
    ["not by one of the two alone", opening("127.0.0.1"), "localhost", "private"],
    [
      "all addresses of a name it names",
      opening("privates.example"),
      "privates.example",
      "10.0.0.5 192.168.0.5",
    ],
    ["not a name of which one address stays closed", opening("10.0.0.0/8"), "privates.example", "private"],
    ["only the private part of a mix", opening("10.0.0.0/8"), "mixed.example", "10.0.0.5"],
    ["a mix by name", opening("mixed.example"), "mixed.example", "8.8.8.8 10.0.0.5"],
    ["in the dress of IPv6", opening("10.0.0.5"), "[::ffff:10.0.0.5]", "10.0.0.5"],
    ["not NAT64 of it", opening("10.0.0.0/8"), "[64:ff9b::a00:5]", "private"],
    ["nothing else: public stays open", opening("10.0.0.0/8"), "public.example", "8.8.8.8 2606:4700::1"],
    ["never 0.0.0.0, by range", opening("0.0.0.0/0"), "0.0.0.0", "private"],
    ["never 0.0.0.0, exactly", opening("0.0.0.0"), "0.0.0.0", "private"],
    ["never ::", opening("::/0"), "[::]", "private"],
    ["never any by name", opening("zero.example"), "zero.example", "private"],
    ["never an answer that is no address", opening("odd.example"), "odd.example", "private"],
  ])("%s", async (...[, rules, target, then]) => expect(await outcome(rules, target)).toBe(then));
});

describe("metadata opens only by being named exactly", () => {
  test.each<Row>([
    ["not by default", open, "169.254.169.254 80", "metadata"],
    ["not by name", open, "metadata.example", "metadata"],
    ["not in a mix", open, "half.example", "metadata"],
    ["not a public one", open, "wire.example", "metadata"],
    ["not by its range", opening("169.254.0.0/16"), "169.254.169.254", "metadata"],
    ["not by a range of itself", opening("169.254.169.254/32"), "169.254.169.254", "metadata"],
    ["not by every range", opening("0.0.0.0/0", "::/0"), "169.254.170.2", "metadata"],
    ["not by a name", opening("metadata.example"), "metadata.example", "metadata"],
    ["not IPv6 by a range", opening("fd00::/8"), "[fd00:ec2::254]", "metadata"],
    ["not decimal", opening("169.254.0.0/16"), "2852039166", "metadata"],
    ["not IPv4-mapped", opening("0.0.0.0/0"), "[::ffff:a9fe:a9fe]", "metadata"],
    ["not NAT64", opening("64:ff9b::/96"), "[64:ff9b::a9fe:a9fe]", "metadata"],
    ["exactly", opening("169.254.169.254"), "169.254.169.254", "169.254.169.254"],
    [
      "exactly, beside its range",
      opening("169.254.0.0/16", "169.254.169.254"),
      "169.254.169.254",
      "169.254.169.254",
    ],
    ["exactly, reached by name", opening("169.254.169.254"), "metadata.example", "169.254.169.254"],
    ["exactly, on its port", opening("169.254.169.254:80"), "169.254.169.254 80", "169.254.169.254"],
    ["exactly, not on another", opening("169.254.169.254:80"), "169.254.169.254 443", "metadata"],
    ["not another one", opening("169.254.169.254"), "169.254.170.2", "metadata"],
    ["IPv6 exactly", opening("fd00:ec2::254"), "[fd00:ec2::254]", "fd00:ec2::254"],
    ["not through an upstream", through("p"), "169.254.169.254", "metadata"],
    [
      "exactly, and not through an upstream",
      { ...through("p"), privates: patterns("169.254.169.254") },
      "169.254.169.254",
      "169.254.169.254",
    ],
  ])("%s", async (...[, rules, target, then]) => expect(await outcome(rules, target)).toBe(then));
});

describe("ports of the service itself are closed", () => {
  const all = opening("0.0.0.0/0", "::/0", "localhost", "own.example", "127.0.0.1", "127.0.0.1:4700");
  test.each<Row>([
    ["by address", all, "127.0.0.1 4700", "remuda"],
    ["by IPv6", all, "[::1] 4700", "remuda"],
    ["by localhost", all, "localhost 4700", "remuda"],
    ["below localhost", all, "app.localhost 4700", "remuda"],
    ["by decimal", all, "2130706433 4700", "remuda"],
    ["in the dress of IPv6", all, "[::ffff:127.0.0.1] 4700", "remuda"],
    ["by a name for loopback", all, "loop.example 4700", "remuda"],
    ["by a name for a public address", all, "own.example 4700", "remuda"],
    ["by the public address", open, "203.0.114.7 4700", "remuda"],
    ["before allowed_hosts is asked", allowing("public.example"), "127.0.0.1 4700", "remuda"],
    ["also where an upstream takes the rest", through("p"), "203.0.114.7 4700", "remuda"],
    ["0.0.0.0, which connects to it", all, "0.0.0.0 4700", "private"],
    ["not other ports", all, "127.0.0.1 3000", "127.0.0.1"],
    ["not that port elsewhere", open, "public.example 4700", "8.8.8.8 2606:4700::1"],
  ])("%s", async (...[, rules, target, then]) => expect(await outcome(rules, target)).toBe(then));
});

describe("upstreams", () => {
  const routed: Rules = {
    ...through("rest", "direct.example", "8.8.4.4"),
    routes: [
      { hosts: patterns("public.example:8443"), upstream: upstream("ported") },
      { hosts: patterns("public.example", "8.8.8.8"), upstream: upstream("first") },
      { hosts: patterns("*.public.example"), upstream: upstream("wild", "www.public.example") },
      { hosts: patterns("public.example"), upstream: upstream("never") },
    ],
  };
  test.each<Row>([
    ["a host that no route names", routed, "other.example", "upstream rest"],
    ["the first route that names it", routed, "public.example", "upstream first"],
    ["a route by port", routed, "public.example 8443", "upstream ported"],
    ["a route by wildcard", routed, "a.public.example", "upstream wild"],
    ["a route's bypass", routed, "www.public.example", "8.8.4.4"],
    ["a route by address", routed, "8.8.8.8", "upstream first"],
    ["the bypass", routed, "direct.example", "unresolved"],
    ["the bypass by address", routed, "8.8.4.4", "8.8.4.4"],
    [
      "the bypass does not open what is private",
      through("p", "private.example"),
      "private.example",
      "private",
    ],
    ["a route alone", { ...open, routes: routed.routes }, "public.example", "upstream first"],
    ["no route and no upstream", { ...open, routes: routed.routes }, "nat64.example", "64:ff9b::808:808"],
    ["allowed_hosts first", { ...routed, allowed: patterns("a.example") }, "public.example", "allowed_hosts"],
    [
      "allowed and routed",
      { ...routed, allowed: patterns("public.example") },
      "public.example",
      "upstream first",
    ],
    [
      "a name in private_hosts goes directly",
      { ...through("p"), privates: patterns("private.example") },
      "private.example",
      "10.0.0.5",
    ],
    [
      "an address in private_hosts goes directly",
      { ...through("p"), privates: patterns("10.0.0.0/8") },
      "10.0.0.5",
      "10.0.0.5",
    ],
    [
      "localhost in private_hosts goes directly",
      { ...through("p"), privates: patterns("127.0.0.1", "::1") },
      "localhost",
      local,
    ],
    [
      "a route does not take what is private",
      { ...opening("10.0.0.5"), routes: [{ hosts: patterns("10.0.0.5"), upstream: upstream("r") }] },
      "10.0.0.5",
      "10.0.0.5",
    ],
    [
      "a route does not open what is private",
      { ...open, routes: [{ hosts: patterns("10.0.0.5", "localhost"), upstream: upstream("r") }] },
      "10.0.0.5",
      "private",
    ],
    [
      "a private name in a range is the upstream's to judge",
      { ...through("p"), privates: patterns("10.0.0.0/8") },
      "private.example",
      "upstream p",
    ],
  ])("%s", async (...[, rules, target, then]) => expect(await outcome(rules, target)).toBe(then));

  test("names that an upstream carries are not resolved here", async () =>
    expect((await judged(routed, "public.example")).resolved).toEqual([]));
});

test("a name is resolved once, and no message tells an address", async () => {
  expect((await judged(open, "mixed.example")).resolved).toEqual(["mixed.example"]);
  for (const target of ["mixed.example", "metadata.example", "own.example 4700", "none.example"]) {
    expect(JSON.stringify((await judged(open, target)).way)).not.toMatch(/\d+\.\d+\.\d+/);
  }
});

describe("an open tunnel after a swap of rules", () => {
  const direct = (host: string, address: string): DialledTarget => ({ host, port: 443, address });
  const carried = (host: string, upstreamId: string): DialledTarget => ({ host, port: 443, upstreamId });
  test.each<[string, Rules, DialledTarget, boolean]>([
    ["a host that is allowed", allowing("public.example"), direct("public.example", "8.8.8.8"), true],
    ["a host that is no longer", allowing("other.example"), direct("public.example", "8.8.8.8"), false],
    ["a list that is gone", open, direct("public.example", "8.8.8.8"), true],
    ["closed", closedRules, direct("public.example", "8.8.8.8"), false],
    ["another port only", allowing("public.example:80"), direct("public.example", "8.8.8.8"), false],
    [
      "a private address that is still open",
      opening("10.0.0.0/8"),
      direct("private.example", "10.0.0.5"),
      true,
    ],
    ["one that is open by name", opening("private.example"), direct("private.example", "10.0.0.5"), true],
    ["one that is no longer", open, direct("private.example", "10.0.0.5"), false],
    ["one in the dress of IPv6", open, direct("private.example", "::ffff:10.0.0.5"), false],
    ["metadata by range", opening("169.254.0.0/16"), direct("metadata.example", "169.254.169.254"), false],
    [
      "metadata named exactly",
      opening("169.254.169.254"),
      direct("metadata.example", "169.254.169.254"),
      true,
    ],
    ["an address as asked", allowing("8.8.8.8"), direct("8.8.8.8", "8.8.8.8"), true],
    ["an address that is not dialled yet", open, { host: "10.0.0.5", port: 80 }, false],
    [
      "a name that is not dialled yet",
      allowing("public.example"),
      { host: "public.example", port: 80 },
      true,
    ],
    [
      "a name not dialled, no longer allowed",
      allowing("a.example"),
      { host: "public.example", port: 80 },
      false,
    ],
    ["the same upstream", through("p"), carried("public.example", "p"), true],
    ["another upstream", through("q"), carried("public.example", "p"), false],
    ["no upstream any more", open, carried("public.example", "p"), false],
    ["an upstream where it was direct", through("p"), direct("public.example", "8.8.8.8"), false],
    ["direct by its bypass now", through("p", "public.example"), carried("public.example", "p"), false],
    ["direct by the bypass still", through("p", "public.example"), direct("public.example", "8.8.8.8"), true],
    [
      "private now",
      { ...through("p"), privates: patterns("public.example") },
      carried("public.example", "p"),
      false,
    ],
    [
      "localhost beside an upstream",
      { ...through("p"), privates: patterns("localhost") },
      direct("localhost", "127.0.0.1"),
      true,
    ],
    [
      "a route that took it over",
      { ...through("p"), routes: [{ hosts: patterns("public.example"), upstream: upstream("r") }] },
      carried("public.example", "p"),
      false,
    ],
    ["what is no host", open, direct("a%2eexample", "8.8.8.8"), false],
    ["what is no address", open, direct("public.example", "8.8.8.8%eth0"), false],
  ])("%s", (...[, rules, dialled, then]) => expect(isStillAllowed(rules, dialled)).toBe(then));
});
