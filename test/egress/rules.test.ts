import { describe, expect, test } from "vitest";
import { closedRules, type Rules } from "../../src/egress/rules.js";
import {
  allowing,
  judged,
  local,
  open,
  opening,
  outcome,
  patterns,
  type Row,
  through,
  upstream,
} from "../support/egress/judged-rules.js";

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
