import { chromium } from "playwright-core";
import { expect, test } from "vitest";
import { openSite } from "../../support/browser/chromium-site.js";
import { startDaemon } from "../../support/daemon/daemon.js";
import { startDns } from "../../support/egress/dns-server.js";
import { openOrigin } from "../../support/egress/egress-origin.js";
import { startRedis } from "../../support/store/redis.js";

test("a pool from before a stricter ceiling opens nothing: it fails closed, and its fill says why", async () => {
  const redis = await startRedis();
  const site = await openSite();
  const host = new URL(site.origin).host;
  const wide = await startDaemon({
    redisUrl: redis.url,
    file: { egress: { private_hosts: [], private_hosts_ceiling: ["127.0.0.0/8"] } },
  });
  await wide.makePool({ name: "stored", network: { private_hosts: [host] } });
  await wide.stop();
  const strict = await startDaemon({
    redisUrl: redis.url,
    file: { egress: { private_hosts: [], private_hosts_ceiling: [] } },
  });
  const { fill, available_count } = await strict.poolWhen(
    "stored",
    ({ fill: found }) => found?.reason === "launch_failing",
  );
  expect(available_count).toBe(0);
  expect(fill?.last_error).toContain(`${host} is outside egress.private_hosts_ceiling`);
  const body = { size: 1, headless: true, network: { private_hosts: [host] } };
  const refused = {
    status: 400,
    body: { code: "bad_request", details: [{ message: expect.stringContaining(`"${host}"`) }] },
  };
  expect(await strict.call("POST /browser_pools", body)).toMatchObject(refused);
  expect(await strict.call("PATCH /browser_pools/stored", { network: body.network })).toMatchObject(refused);
  expect(await strict.call("POST /browsers", { headless: true, network: body.network })).toMatchObject(
    refused,
  );
  await strict.call("PATCH /browser_pools/stored", { network: {} });
  await strict.poolWhen("stored", ({ available_count: ready }) => ready === 1);
  await strict.stop();
  await Promise.all([site.close(), redis.stop()]);
});

test("no page reaches a private service by calling it a proxy", async () => {
  const requests: string[] = [];
  const service = await openOrigin(({ method, url }, reply) => {
    requests.push(`${method} ${url}`);
    reply.end("private");
  });
  const dns = await startDns({ "inner.test": ["127.0.0.1"] });
  const egress = { resolvers: [dns.server], check_url: "http://x.test/", proxy_hosts: ["*.opened.test"] };
  const daemon = await startDaemon({ file: { egress } });
  const proxyAt = (host: string) => ({
    type: "custom",
    protocol: "http",
    config: { host, port: service.port },
  });
  expect(await daemon.call("POST /proxies", proxyAt("127.0.0.1"))).toMatchObject({
    status: 400,
    body: { details: [{ message: expect.stringContaining("egress.proxy_hosts does not name it") }] },
  });
  const { body: proxy } = await daemon.call("POST /proxies", proxyAt("inner.test"));
  expect(await daemon.call(`POST /proxies/${proxy.id}/check`, {})).toMatchObject({
    status: 200,
    body: { status: "unavailable" },
  });
  const { body: session } = await daemon.call("POST /browsers", { headless: true, proxy: { id: proxy.id } });
  const browser = await chromium.connectOverCDP(session.cdp_ws_url);
  const page = browser.contexts()[0]?.pages()[0];
  const answer = await page?.goto("http://x.test/any/path");
  expect([answer?.status(), await answer?.text()]).toEqual([
    502,
    expect.stringContaining(`The proxy ${proxy.id} is at a private address`),
  ]);
  expect(requests).toEqual([]);
  await browser.close();
  await daemon.stop();
  await Promise.all([service.close(), dns.close()]);
});
