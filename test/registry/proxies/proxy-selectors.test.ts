import { expect, test } from "vitest";
import { done, refusal } from "../../../src/base/errors.js";
import type { ProxyId } from "../../../src/base/ids.js";
import {
  namedProxies,
  proxyFields,
  type ProxyRefs,
  resolveProxies,
  withFaults,
} from "../../../src/registry/proxies/selectors.js";

/** Two proxies named twin, and one named out. */
const refs: ProxyRefs = {
  resolve: async ({ id, name }) => {
    if (name === "twin") return { kind: "ambiguous", count: 2 };
    return id === "p1" || name === "out"
      ? { kind: "found", id: "p1" as ProxyId, name: "out" }
      : { kind: "unknown" };
  },
};
const routes = (...proxies: object[]) => ({
  proxy_routes: proxies.map((proxy) => ({ hosts: ["a.example"], proxy })),
});
const resolve = async (body: Parameters<typeof resolveProxies>[1]) => {
  const { body: resolved, faults } = await resolveProxies(refs, body);
  return { resolved, faults: faults.map(({ message }) => message) };
};

test("what names a proxy names it by its id afterwards, and everything else stays", async () => {
  const network = { allowed_hosts: ["b.example"], ...routes({ name: "out" }, { id: "p1" }) };
  expect(await resolve({ proxy: { name: "out" }, network })).toEqual({
    resolved: {
      proxy: { id: "p1" },
      network: { allowed_hosts: ["b.example"], ...routes({ id: "p1" }, { id: "p1" }) },
    },
    faults: [],
  });
  for (const body of [
    {},
    { proxy_id: "p1" },
    { proxy_id: "" },
    { proxy: { mode: "direct" as const } },
    { network: {} },
    { network: { proxy_routes: [] } },
  ]) {
    expect(await resolve(body)).toEqual({ resolved: body, faults: [] });
  }
});

test("each reference that means no proxy, or several, has a fault of its own", async () => {
  const body = {
    proxy_id: "out",
    proxy: { name: "twin" },
    network: routes({ id: "p1" }, { id: "p2" }, { name: "twin" }),
  };
  expect((await resolve(body)).faults.toSorted()).toEqual([
    "network.proxy_routes[1].proxy: there is no such proxy",
    "network.proxy_routes[2].proxy: 2 proxies have this name; choose one by its id",
    "proxy: 2 proxies have this name; choose one by its id",
    "proxy_id: there is no such proxy",
  ]);
});

test("a reference of the wrong form is left to be refused for its form", async () => {
  const body = { proxy: { id: "p9", name: "out" }, network: routes({}, { id: "p9", name: "x" }) };
  expect(await resolve(body)).toEqual({ resolved: body, faults: [] });
  expect(await resolve({ proxy: { mode: "direct", id: "p9" } })).toEqual({
    resolved: { proxy: { mode: "direct", id: "p9" } },
    faults: [],
  });
});

test("faults of references are told with those of the body", () => {
  const own = { code: "invalid_input", message: "memory: is odd" };
  const more = [{ code: "invalid_input", message: "proxy_id: there is no such proxy" }];
  expect(withFaults(done(1), [])).toEqual(done(1));
  expect(withFaults(done(1), more)).toEqual(refusal("bad_request", { details: more }));
  expect(withFaults(refusal("bad_request", { details: [own] }), more)).toEqual(
    refusal("bad_request", { details: [own, ...more] }),
  );
  expect(withFaults(refusal("not_supported"), [])).toEqual(refusal("not_supported"));
});

test("a configuration names its own proxy and those of its routes", () => {
  expect(namedProxies({ proxy_id: "p1", network: routes({ id: "p2" }, { id: "p3" }) })).toEqual([
    "p1",
    "p2",
    "p3",
  ]);
  expect(namedProxies({})).toEqual([]);
});

test("a session shows what it goes through, or the mode it asked for", () => {
  expect(proxyFields({ proxy_id: "p1" }, "out")).toEqual({
    proxy: { id: "p1", name: "out" },
    proxy_id: "p1",
  });
  expect(proxyFields({ proxy_id: "p1" })).toEqual({ proxy: { id: "p1" }, proxy_id: "p1" });
  expect(proxyFields({ proxy_mode: "direct" })).toEqual({ proxy: { mode: "direct" } });
  expect(proxyFields({})).toEqual({});
});
