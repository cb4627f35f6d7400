import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { TimeLimitReached } from "../../src/base/deadline.js";
import { makeResolve, type Resolve } from "../../src/egress/resolve.js";
import { closedRules, judgeTarget, type Rules } from "../../src/egress/rules.js";
import { type Dns, startDns } from "../support/egress/dns-server.js";

let dns: Dns;
beforeEach(async () => {
  dns = await startDns({
    "four.example": ["198.51.100.1", "198.51.100.2"],
    "six.example": ["2001:db8::1"],
    "both.example": ["2001:db8::5", "198.51.100.3"],
    "mapped.example": ["::ffff:127.0.0.1"],
    localhost: ["198.51.100.9"],
    "foo.localhost": ["198.51.100.9"],
    "127.0.0.1": ["198.51.100.9"],
    "broken.example": "servfail",
    "silent.example": "silent",
  });
});
afterEach(() => dns.close());

/** Within a quarter of the limit a server is asked once; what it does not answer by then is asked again. */
const resolver = (limitMs = 60_000): Resolve =>
  makeResolve({ clock: systemClock, limitMs, servers: [dns.server] });

describe("a host has these addresses", () => {
  test.each<[string, string, string[], number]>([
    ["only IPv4", "four.example", ["198.51.100.1", "198.51.100.2"], 2],
    ["only IPv6", "six.example", ["2001:db8::1"], 2],
    ["both, IPv4 first", "both.example", ["198.51.100.3", "2001:db8::5"], 2],
    ["upper case and a trailing dot", "BOTH.example.", ["198.51.100.3", "2001:db8::5"], 2],
    ["an IPv4-mapped answer as IPv4", "mapped.example", ["127.0.0.1"], 2],
    ["no such name", "none.example", [], 2],
    ["localhost, without a question to DNS", "localhost", ["127.0.0.1", "::1"], 0],
    ["localhost with a trailing dot", "LOCALHOST.", ["127.0.0.1", "::1"], 0],
    ["what is below localhost", "foo.localhost", ["127.0.0.1", "::1"], 0],
    ["an IPv4 address itself", "127.0.0.1", ["127.0.0.1"], 0],
    ["an IPv6 address itself", "[2001:DB8::0:1]", ["2001:db8::1"], 0],
    ["what is no host", "a%2eexample", [], 0],
    ["a name of 300 characters", "a.".repeat(150) + "example", [], 0],
  ])("%s", async (...[, host, addresses, asked]) => {
    expect(await resolver()(host)).toEqual(addresses);
    expect(dns.queries).toHaveLength(asked);
  });
});

test("both families are asked, each once", async () => {
  await resolver()("both.example");
  expect([...dns.queries].sort()).toEqual(["A both.example", "AAAA both.example"]);
});

test("/etc/hosts decides nothing: of a name that stands there DNS is asked", async () => {
  const written = readFileSync("/etc/hosts", "utf8").replace(/#.*/g, "").split(/\s+/);
  const name =
    written
      .map((word) => word.toLowerCase())
      .find((word) => /^[a-z]/.test(word) && !word.endsWith("localhost")) ?? hostname().toLowerCase();
  dns.set(name, ["198.51.100.7"]);
  expect(await resolver()(name)).toEqual(["198.51.100.7"]);
});

test.each(["servfail", "silent"] as const)(
  "one family that is answered %s leaves the other",
  async (failure) => {
    dns.set("A half.example", ["198.51.100.1"]);
    dns.set("AAAA half.example", failure);
    expect(await resolver(4000)("half.example")).toEqual(["198.51.100.1"]);
  },
);

test("a server's failure is thrown", async () => {
  await expect(resolver()("broken.example")).rejects.toMatchObject({ code: "ESERVFAIL" });
});

test("a server that says nothing is waited for no longer than the limit", async () => {
  await expect(resolver(200)("silent.example")).rejects.toSatisfy(
    (error) => error instanceof TimeLimitReached || (error as { code?: string }).code === "ETIMEOUT",
  );
});

test("an abort ends the wait, and one before it asks nothing", async () => {
  const stop = new AbortController();
  const waiting = resolver()("silent.example", stop.signal);
  setImmediate(() => stop.abort());
  await expect(waiting).rejects.toMatchObject({ code: "ECANCELLED" });
  const asked = dns.queries.length;
  await expect(resolver()("four.example", AbortSignal.abort())).rejects.toMatchObject({ name: "AbortError" });
  expect(dns.queries).toHaveLength(asked);
});

describe("a rebinding name", () => {
  const everyone: Rules = { ...closedRules, allowed: null };
  const reserved = { isOwn: () => false };

  test("is dialled where it was judged: public first, then closed and denied", async () => {
    dns.set("rebind.example", { turns: [["8.8.8.8"], ["127.0.0.1"]] });
    const ask = () =>
      judgeTarget(everyone, { host: "rebind.example", port: 80 }, { resolve: resolver(), reserved });
    expect(await ask()).toEqual({ kind: "direct", addresses: ["8.8.8.8"] });
    expect(await ask()).toMatchObject({ kind: "denied", by: "private" });
    expect(dns.queries.filter((query) => query.startsWith("A "))).toHaveLength(2);
  });

  test("that answers both at once is denied", async () => {
    dns.set("mixed.example", ["8.8.8.8", "::1"]);
    expect(
      await judgeTarget(everyone, { host: "mixed.example", port: 80 }, { resolve: resolver(), reserved }),
    ).toMatchObject({ kind: "denied", by: "private" });
  });

  test("that DNS cannot tell is denied", async () => {
    expect(
      await judgeTarget(everyone, { host: "broken.example", port: 80 }, { resolve: resolver(), reserved }),
    ).toMatchObject({ kind: "denied", by: "unresolved" });
  });
});
