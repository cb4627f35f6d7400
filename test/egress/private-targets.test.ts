import { describe, expect, test } from "vitest";
import {
  addresses,
  judged,
  local,
  open,
  opening,
  outcome,
  patterns,
  type Row,
  through,
} from "../support/egress/judged-rules.js";

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
