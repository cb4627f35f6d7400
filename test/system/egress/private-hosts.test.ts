import { expect, test } from "vitest";
import { openSite } from "../../support/browser/chromium-site.js";
import { startDaemon } from "../../support/daemon/daemon.js";
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
