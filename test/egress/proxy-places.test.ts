import { expect, test } from "vitest";
import { makeReservedEndpoints } from "../../src/egress/reserved-endpoints.js";
import { judgeProxy, whyProxyClosed } from "../../src/egress/rules.js";
import { patterns, resolveBy } from "../support/egress/egress-bed.js";

const isPrivate = "is at a private address, and egress.proxy_hosts does not name it";
const isMetadata =
  "is at an address that serves a cloud's metadata, and egress.proxy_hosts does not name that exact address";
const resolve = resolveBy({
  "public.example": ["8.8.8.8", "2606:4700::1"],
  "squid.corp": ["10.0.0.5"],
  "mixed.corp": ["8.8.8.8", "10.0.0.5"],
  "cloud.corp": ["169.254.169.254"],
});
const judged = async (host: string, opened: readonly string[], port = 3128) => {
  const parts = { resolve, reserved: makeReservedEndpoints([]), proxyHosts: patterns(...opened) };
  const verdict = await judgeProxy({ host, port }, parts);
  return verdict.kind === "open" ? verdict.addresses.join(" ") : verdict.why;
};

test.each([
  ["public.example", [], "8.8.8.8 2606:4700::1"],
  ["8.8.8.8", [], "8.8.8.8"],
  ["none.example", [], "has a name that does not resolve"],
  ["squid.corp", [], isPrivate],
  ["squid.corp", ["squid.corp"], "10.0.0.5"],
  ["squid.corp", ["*.corp:3128"], "10.0.0.5"],
  ["squid.corp", ["squid.corp:8080"], isPrivate],
  ["squid.corp", ["10.0.0.0/24"], "10.0.0.5"],
  ["squid.corp", ["10.0.1.0/24"], isPrivate],
  ["mixed.corp", [], isPrivate],
  ["cloud.corp", ["*.corp", "169.254.0.0/16"], isMetadata],
  ["cloud.corp", ["169.254.169.254"], "169.254.169.254"],
  ["169.254.169.254", ["0.0.0.0/0"], isMetadata],
  ["127.0.0.1", [], isPrivate],
  ["::1", [], isPrivate],
  ["fd00::7", [], isPrivate],
  ["fe80::1", [], isPrivate],
  ["64:ff9b::a00:5", [], isPrivate],
  ["100.64.0.1", [], isPrivate],
  ["0.0.0.0", ["0.0.0.0/0"], isPrivate],
  ["a.localhost", [], isPrivate],
  ["localhost", ["127.0.0.1", "::1"], "127.0.0.1 ::1"],
] as const)("a proxy at %s, with %j open: %s", async (host, opened, then) =>
  expect(await judged(host, opened)).toBe(then),
);

test.each([
  ["10.0.0.5", [], isPrivate],
  ["10.0.0.5", ["10.0.0.5:3128"], undefined],
  ["10.0.0.5", ["10.0.0.5:80"], isPrivate],
  ["169.254.169.254", ["0.0.0.0/0"], isMetadata],
  ["localhost", [], isPrivate],
  ["8.8.8.8", [], undefined],
  ["squid.corp", [], undefined],
] as const)("a proxy is registered at %s, with %j open: %s", (host, opened, why) =>
  expect(whyProxyClosed({ host, port: 3128 }, patterns(...opened))).toBe(why),
);

test("a port of the service itself is closed to proxies, whatever is open", async () => {
  const reserved = makeReservedEndpoints([{ host: "127.0.0.1", port: 6379 }]);
  const parts = { resolve, reserved, proxyHosts: patterns("127.0.0.0/8") };
  expect(await judgeProxy({ host: "127.0.0.1", port: 6379 }, parts)).toEqual({
    kind: "closed",
    why: "is a port of the service itself",
  });
});
