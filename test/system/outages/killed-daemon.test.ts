import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { nothing, takeCensus } from "../../support/browser/chromium-census.js";
import { until } from "../../support/browser/chromium-until.js";
import { uidsIn } from "../../support/daemon/daemon.js";
import { type DaemonProcess, isRedisLiving, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { keysAbout } from "../../support/store/redis-look.js";

const limitMs = 60_000;
/** Each engine; headful, Chromium has a display's process beside its own. */
const pools = [
  { name: "shell", headless: true, engine: "headless-shell" },
  { name: "headful", headless: false, viewport: { width: 800, height: 600 } },
];
const start = (): Promise<DaemonProcess> =>
  spawnDaemon(new DaemonPlace({ file: { node: { parallel_launches: 3 } } }));
const makeAll = (daemon: DaemonProcess): Promise<unknown> =>
  Promise.all(
    pools.map((pool) => daemon.call("POST /browser_pools", { size: 1, reset_on_release: "state", ...pool })),
  );
const acquireAll = async (daemon: DaemonProcess): Promise<{ session_id: string; cdp_ws_url: string }[]> =>
  (
    await Promise.all(
      pools.map(({ name }) =>
        daemon.call(`POST /browser_pools/${name}/acquire`, { acquire_timeout_seconds: 50 }),
      ),
    )
  ).map(({ body }) => body);

/** Brings a fresh daemon to a stage at which it is then killed. */
const stages: Readonly<Record<string, (daemon: DaemonProcess) => Promise<unknown>>> = {
  async launching(daemon) {
    await makeAll(daemon);
    await until(
      "processes of launches",
      async () =>
        (await takeCensus(daemon.place.scratchDirectory, new Set())).processes.length >= pools.length,
    );
  },
  async idle(daemon) {
    await makeAll(daemon);
    await Promise.all(pools.map(({ name }) => daemon.poolWhen(name, (pool) => pool.available_count === 1)));
  },
  async leased(daemon) {
    await makeAll(daemon);
    const leases = await acquireAll(daemon);
    await Promise.all(
      leases.map(async ({ cdp_ws_url }) =>
        (await connectRaw(cdp_ws_url)).send("Target.createTarget", {
          url: "data:text/html,<title>held</title>",
        }),
      ),
    );
  },
  async resetting(daemon) {
    await makeAll(daemon);
    const leases = await acquireAll(daemon);
    await Promise.all(leases.map(async ({ cdp_ws_url }) => (await connectRaw(cdp_ws_url)).close()));
    await Promise.all(
      leases.map(({ session_id }, at) =>
        daemon.call(`POST /browser_pools/${pools[at]?.name}/release`, { session_id }),
      ),
    );
  },
};

const browsersOf = async (daemon: DaemonProcess): Promise<string[]> =>
  (await Promise.all(pools.map(({ name }) => daemon.browsersOf(name))))
    .flat()
    .map(({ session_id }) => session_id);

test.each(Object.keys(stages))(
  "a daemon killed while its browsers are %s: they end without it, and its next start clears what is left",
  async (stage) => {
    const daemon = await start();
    const { place } = daemon;
    await stages[stage]?.(daemon);
    const before = await browsersOf(daemon);
    expect(before).toHaveLength(pools.length);
    await daemon.end("SIGKILL");
    const uids = new Set([...uidsIn(daemon.log), 200_000]);
    await until(
      "no process left",
      async () => (await takeCensus(place.scratchDirectory, uids)).processes.length === 0,
      limitMs,
    );

    const next = await spawnDaemon(place);
    await Promise.all(
      pools.map(({ name }) =>
        next.poolWhen(
          name,
          (pool) => pool.available_count === 1 && pool.acquired_count + pool.resetting_count === 0,
          limitMs,
        ),
      ),
    );
    const after = await browsersOf(next);
    expect(after.filter((id) => before.includes(id))).toEqual([]);
    await until(
      "no key speaks of them",
      async () => (await keysAbout(join(place.dataDir, "redis/redis.sock"), before)).length === 0,
      limitMs,
    );
    expect(
      (await takeCensus(place.scratchDirectory, new Set())).directories.filter((name) =>
        before.includes(name),
      ),
    ).toEqual([]);
    expect(isRedisLiving(daemon.log)).toBe(false);
    await next.stop(daemon.log);
  },
);

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
      .once("connect", () => (socket.destroy(), resolve(true)))
      .once("error", () => resolve(false));
  });

test.each([
  ["SIGTERM", "idle"],
  ["SIGINT", "leased"],
  ["SIGTERM", "launching"],
  ["SIGTERM", "resetting"],
] as const)("a daemon ended by %s while its browsers are %s leaves nothing", async (signal, stage) => {
  const daemon = await start();
  await stages[stage]?.(daemon);
  const ids = await browsersOf(daemon);
  expect(await daemon.end(signal)).toEqual({ code: 0, signal: null });
  expect(await takeCensus(daemon.place.scratchDirectory, uidsIn(daemon.log))).toEqual(nothing);
  expect([isRedisLiving(daemon.log), await isListening(daemon.port)]).toEqual([false, false]);
  // What Redis has kept for the next start speaks of none of its browsers.
  const next = await spawnDaemon(daemon.place);
  expect(await keysAbout(join(daemon.place.dataDir, "redis/redis.sock"), ids)).toEqual([]);
  await next.stop();
});

test("a second, later signal ends a draining daemon at once, and just as clean", async () => {
  const place = new DaemonPlace({ file: { drain: { limit_seconds: 600 }, stop: { hurried_seconds: 60 } } });
  const daemon = await spawnDaemon(place);
  await daemon.makePool({ name: "held" });
  const { body } = await daemon.call("POST /browser_pools/held/acquire", { acquire_timeout_seconds: 30 });
  const client = await connectRaw(body.cdp_ws_url);
  daemon.signal("SIGTERM");
  await until("the drain begun", () => daemon.log.includes("drain begun"));
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  // Signals within a second of the first are the same one.
  await until("the stop hurried", () => {
    daemon.signal("SIGTERM");
    return daemon.log.includes("stop was hurried");
  });
  expect(await daemon.ended()).toEqual({ code: 0, signal: null });
  expect(await takeCensus(place.scratchDirectory, uidsIn(daemon.log))).toEqual(nothing);
  expect(isRedisLiving(daemon.log)).toBe(false);
  place.remove();
});
