import { expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import type { Got } from "../../support/http/http-server.js";
import { startRestartedRedis } from "../../support/store/restarted-redis.js";
import { isWaitedFor } from "../../support/store/waited-for.js";

const path = "/vaults/logins/items/shop";
const passwordOf = (version: number): string => `secret-of-version-${version}`;
const put = (daemon: DaemonProcess): Promise<Got> =>
  daemon.call(`PUT ${path}`, {
    type: "credential",
    spec: {
      provider: "native",
      fields: [
        { name: "user", type: "text", sensitive: false, value: "v1" },
        { name: "password", type: "password", value: passwordOf(1) },
      ],
    },
  });
const patch = (daemon: DaemonProcess, version: number): Promise<Got> =>
  daemon.call(`PATCH ${path}`, {
    type: "credential",
    version,
    spec: { fields: { user: { value: `v${version + 1}` }, password: { value: passwordOf(version + 1) } } },
  });

/** Two daemons that lose nothing, beside a Redis of somebody else's that syncs once a second. */
async function start() {
  const redis = await startRestartedRedis(["--appendfsync", "everysec"]);
  const client = redis.client();
  const file = { vault: { allow_lossy_redis: false } };
  const places = (["control", "control", "node"] as const).map(
    (role) => new DaemonPlace({ redisUrl: redis.url, role, file }),
  );
  const [one, other, node] = await Promise.all(places.map((place) => spawnDaemon(place)));
  if (!one || !other || !node) throw new Error("there are three daemons");
  return {
    redis,
    one,
    other,
    server: () => client.info("server"),
    /** How often it was waited for since the server was started. */
    waits: async () =>
      Number(/^cmdstat_waitaof:calls=(\d+)/m.exec(await client.info("commandstats"))?.[1] ?? 0),
    readyz: async () => (await one.call("GET /readyz")).body,
    async stop() {
      for (const daemon of [node, other, one]) await daemon.stop();
      await redis.stop();
    },
  };
}

test("the whole daemon beside a Redis that syncs once a second: what it has acknowledged survives the death of both, or nothing is written and that is said", async () => {
  const bed = await start();
  const { one, other, redis } = bed;
  const made = await one.call("POST /vaults", { name: "logins" });
  if (!isWaitedFor(await bed.server())) {
    expect(made, made.text).toMatchObject({ status: 400, body: { code: "not_supported" } });
    expect(made.text).toContain("vault.allow_lossy_redis");
    expect(await bed.readyz()).toMatchObject({ vaults: "refused" });
    // Nothing was written by the way, and everything else goes on.
    expect((await other.call("GET /vaults")).body).toEqual([]);
    const pool = await other.call("POST /browser_pools", { name: "herd", size: 1 });
    expect(pool.status, pool.text).toBeLessThan(300);
    return await bed.stop();
  }
  expect(made, made.text).toMatchObject({ status: 201 });
  await until("it is known", async () => (await bed.readyz()).vaults === "durable");
  expect((await put(one)).status).toBe(200);
  let version = 1;
  for (let round = 0; round < 4; round += 1) {
    const before = await bed.waits();
    const changed = await patch(round % 2 === 0 ? one : other, version);
    expect(changed, changed.text).toMatchObject({ status: 200, body: { version: version + 1 } });
    expect(await bed.waits()).toBeGreaterThan(before);
    version += 1;
    // Nothing is flushed on the way out: it is killed.
    await redis.restart();
    for (const daemon of [one, other]) {
      const { body } = await until("Redis back", async () => {
        const got = await daemon.call(`GET ${path}`);
        return got.status === 200 ? got : undefined;
      });
      expect(body).toMatchObject({ version, state: { fields: { user: { value: `v${version}` } } } });
    }
  }
  await bed.stop();
});
