import { BadRequestError } from "@onkernel/sdk";
import { expect, test } from "vitest";
import { sharedProxyBed } from "../../support/http/proxy-bed.js";
import { failed } from "../../support/http/http-server.js";

const bed = sharedProxyBed();
const { create, detailsOf } = bed;

test("a proxy that a pool names is not deleted, until no pool names it any more", async () => {
  const [own, routed] = [await create({ name: "own" }), await create({ name: "routed" })];
  const { body: pool } = await bed.daemon.call("POST /browser_pools", {
    name: "herd",
    size: 1,
    headless: true,
    fill_rate_per_minute: 0,
    proxy_id: own,
    network: { proxy_routes: [{ hosts: ["a.example"], proxy: { name: "routed" } }] },
  });
  for (const id of [own, routed]) {
    expect(await failed(bed.kernel.proxies.delete(id))).toMatchObject({
      status: 400,
      error: {
        code: "resource_in_use",
        details: [{ code: "resource_in_use", message: `pool herd (${pool.id})` }],
      },
    });
    expect((await bed.kernel.proxies.retrieve(id)).id).toBe(id);
  }
  expect((await bed.daemon.call("PATCH /browser_pools/herd", { proxy_id: "" })).status).toBe(200);
  await bed.kernel.proxies.delete(own);
  expect(await failed(bed.kernel.proxies.delete(routed))).toBeInstanceOf(BadRequestError);
  await bed.kernel.browserPools.delete("herd");
  await bed.kernel.proxies.delete(routed);
});

test("a reference to no proxy, or to several, is refused field by field; nothing is changed", async () => {
  const [one, twin] = [await create({ name: "twin" }), await create({ name: "twin" })];
  const network = {
    proxy_routes: [
      { hosts: ["a.example"], proxy: { id: one } },
      { hosts: ["b.example"], proxy: { name: "twin" } },
      { hosts: ["c.example"], proxy: { id: "none" } },
    ],
  };
  const faults = [
    "network.proxy_routes[1].proxy: 2 proxies have this name; choose one by its id",
    "network.proxy_routes[2].proxy: there is no such proxy",
    "proxy_id: there is no such proxy",
  ];
  const body = { size: 1, headless: true, fill_rate_per_minute: 0, name: "herd" };
  expect((await detailsOf("POST /browser_pools", { ...body, proxy_id: "none", network })).toSorted()).toEqual(
    faults,
  );
  expect((await bed.daemon.call("GET /browser_pools/herd")).status).toBe(404);
  await bed.daemon.call("POST /browser_pools", { ...body, proxy_id: one });
  expect(
    (await detailsOf("PATCH /browser_pools/herd", { proxy_id: "none", network, memory: "16GiB" })).toSorted(),
  ).toEqual([expect.stringMatching(/^memory: /), ...faults]);
  expect((await bed.daemon.call("GET /browser_pools/herd")).body.browser_pool_config).toMatchObject({
    proxy_id: one,
  });
  expect(await detailsOf("POST /browsers", { headless: true, proxy: { name: "twin" } })).toEqual([
    "proxy: 2 proxies have this name; choose one by its id",
  ]);
  expect(await detailsOf("POST /browsers", { headless: true, proxy_id: "none" })).toEqual([
    "proxy_id: there is no such proxy",
  ]);
  expect(await detailsOf("POST /browsers", { headless: true, proxy_id: one, proxy: { id: twin } })).toEqual([
    "proxy: cannot be combined with proxy_id",
  ]);
  await bed.kernel.browserPools.delete("herd");
  await Promise.all([one, twin].map((id) => bed.kernel.proxies.delete(id)));
});

test("a route is kept by the id of its proxy, and only that id is expected of a network", async () => {
  const [id, other] = [await create({ name: "out" }), await create({ name: "other" })];
  const routes = (proxy: object) => ({ proxy_routes: [{ hosts: ["A.example"], proxy }] });
  const made = await bed.daemon.call("POST /browser_pools", {
    size: 1,
    headless: true,
    fill_rate_per_minute: 0,
    name: "herd",
    network: routes({ name: "out" }),
  });
  const { network } = made.body.browser_pool_config;
  expect(network).toEqual({ proxy_routes: [{ hosts: ["a.example"], proxy: { id } }] });
  const patch = (expected: object) =>
    bed.daemon.call("PATCH /browser_pools/herd", { timeout_seconds: 77, expected_network: expected });
  for (const expected of [routes({ name: "out" }), routes({ id: other }), {}])
    expect(await patch(expected)).toMatchObject({ status: 409, body: { code: "stale_network" } });
  expect((await bed.daemon.call("GET /browser_pools/herd")).body.browser_pool_config.timeout_seconds).toBe(
    600,
  );
  expect((await patch(network)).status).toBe(200);
  await bed.kernel.proxies.update(id, { name: "renamed" });
  expect((await patch(routes({ id }))).status).toBe(200);
  expect(
    (
      await bed.daemon.call("PATCH /browser_pools/herd", {
        network: routes({ name: "other" }),
        expected_network: network,
      })
    ).body.browser_pool_config.network,
  ).toEqual({ proxy_routes: [{ hosts: ["a.example"], proxy: { id: other } }] });
  await bed.kernel.browserPools.delete("herd");
  await Promise.all([id, other].map((one) => bed.kernel.proxies.delete(one)));
});
