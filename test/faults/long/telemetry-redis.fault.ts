import { afterEach, beforeEach, expect, onTestFinished } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import type { DaemonClient, Lease } from "../../support/daemon/daemon.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { startRedisFailover } from "../../support/store/redis-failover.js";
import { commandsIn, gapsIn, StreamFollower, wrongNumbers } from "../../support/telemetry/stream-follower.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();
const telemetry = { enabled: true };
// None of these faults is to end a lease.
const patient = { node: { lost_after_ms: 60_000 }, acquire: { control_lost_after_ms: 60_000 } };

/** Drives a browser without a pause; knows how much it has sent, and how long the slowest answer took. */
class Driver {
  sent = 0;
  slowestMs = 0;

  constructor(readonly client: RawCdp) {}

  async drive(ms: number): Promise<void> {
    const began = performance.now();
    while (performance.now() - began < ms) {
      const asked = performance.now();
      await this.client.send("Target.activateTarget", { targetId: "there-is-none" });
      this.sent += 1;
      this.slowestMs = Math.max(this.slowestMs, performance.now() - asked);
    }
  }
}

const lostIn = async (daemon: DaemonClient): Promise<Record<string, number>> => {
  const { text } = await daemon.call("GET /metrics");
  const found = text.matchAll(/^remuda_telemetry_events_lost_total\{reason="(\w+)"\} (\d+)/gm);
  return Object.fromEntries([...found].map(([, why = "", count]) => [why, Number(count)]));
};

let stops: (() => Promise<void>)[] = [];
beforeEach(() => void (stops = []));
afterEach(async () => {
  for (const stop of stops.toReversed()) await stop();
});

async function openHeld(daemon: DaemonClient) {
  await daemon.makePool({ name: "told", telemetry });
  const lease = (await daemon.call("POST /browser_pools/told/acquire", {})).body as Lease;
  const follower = new StreamFollower([daemon], lease.session_id);
  stops.push(() => follower.stop());
  const driver = new Driver(await connectRaw(lease.cdp_ws_url));
  await driver.drive(200);
  await until("the first events", () => (commandsIn(follower.told).length > 0 ? true : undefined));
  return { lease, follower, driver };
}

/** Its connection's end, once its reader has it. */
async function goneOf({ told }: StreamFollower): Promise<number> {
  const end = await until(
    "the end of the connection",
    () => told.find(({ event }) => event.type === "cdp_disconnect"),
    30_000,
  );
  return end.event.data.telemetry_dropped ?? 0;
}

/** What was sent is told in its order and once, or counted. */
async function expectWhole(follower: StreamFollower, { client, sent }: Driver, daemon: DaemonClient) {
  await client.close();
  const dropped = await goneOf(follower);
  const commands = commandsIn(follower.told);
  expect([wrongNumbers(follower.told), gapsIn(follower.told)]).toEqual([[], 0]);
  expect([commands.length + dropped, (await lostIn(daemon))["too_many"] ?? 0]).toEqual([sent, dropped]);
  expect(commands.every((id, place) => place === 0 || id > (commands[place - 1] ?? 0))).toBe(true);
  return `${sent} commands, of which ${dropped} were counted as lost, and each other one told once, in its place`;
}

fault(
  "telemetry: Redis stands still, its connections freeze and are cut, and it is slow, one after the other",
  async (tell) => {
    const daemon = await bed.start("all", patient);
    const { follower, driver } = await openHeld(daemon);
    const during = async (what: () => unknown, ms: number): Promise<void> => {
      await what();
      await driver.drive(ms);
    };
    await during(() => bed.redis.signal("SIGSTOP"), 5000);
    await during(() => bed.redis.signal("SIGCONT"), 500);
    await during(() => bed.proxy.freeze(), 4000);
    await during(() => bed.proxy.thaw(), 500);
    await during(() => bed.proxy.freeze("replies"), 4000);
    await during(() => bed.proxy.thaw(), 500);
    await during(() => bed.proxy.cut(), 3000);
    await during(() => bed.proxy.restore(), 500);
    await during(() => bed.proxy.delay(100), 3000);
    bed.proxy.delay(0);
    const watch = startWatch();
    const saw = await expectWhole(follower, driver, daemon);
    tell({ saw: `${saw}; slowest answer ${driver.slowestMs.toFixed(0)} ms`, recoveryMs: watch.since() });
  },
);

/** A client and the reader of its lease, when a follower that takes over lacks their last 500 commands. */
async function openDetached() {
  const redis = await startRedisFailover();
  onTestFinished(() => redis.stop());
  const daemon = await bed.start("all", patient, { redisUrl: redis.url });
  const { follower, driver } = await openHeld(daemon);
  await redis.detach();
  await driver.drive(500);
  await until("all told", () => (commandsIn(follower.told).length === driver.sent ? true : undefined));
  return { redis, daemon, follower, driver };
}

/** How many events were lost, as the end of the client says and the metrics do. */
async function lostAsToldOf(follower: StreamFollower, daemon: DaemonClient): Promise<number> {
  const dropped = await goneOf(follower);
  const { store_lost: lost = 0 } = await lostIn(daemon);
  expect(lost).toBeGreaterThan(10);
  expect(dropped).toBe(lost);
  return lost;
}

fault("telemetry: Redis fails over and has lost the last events it acknowledged", async (tell) => {
  const { redis, daemon, follower, driver } = await openDetached();
  const watch = startWatch();
  await redis.failOver();
  const before = follower.lastSeq;
  await driver.drive(500);
  await until("events after it", () => (follower.lastSeq > before ? true : undefined), 30_000);
  const recoveryMs = watch.since();
  await driver.client.close();
  const lost = await lostAsToldOf(follower, daemon);
  // Its reader has had what is lost, and hears all that came afterwards.
  expect([wrongNumbers(follower.told), gapsIn(follower.told)]).toEqual([[], 0]);
  expect(commandsIn(follower.told)).toHaveLength(driver.sent);
  tell({
    saw: `${lost} events lost and counted; their reader has had them, and hears all that came afterwards`,
    recoveryMs,
  });
});

fault(
  "telemetry: Redis fails over, and the first that it is told of is that the client has gone",
  async (tell) => {
    const { redis, daemon, follower, driver } = await openDetached();
    const watch = startWatch();
    await redis.failOver();
    await driver.client.close();
    const lost = await lostAsToldOf(follower, daemon);
    const recoveryMs = watch.since();
    tell({ saw: `${lost} events lost and counted at the end of the client whose they were`, recoveryMs });
  },
);

fault("telemetry: Redis is full (OOM), and has room again", async (tell) => {
  const daemon = await bed.start("all", patient);
  const { follower, driver } = await openHeld(daemon);
  const redis = bed.redis.client();
  await redis.config("SET", "maxmemory-policy", "noeviction");
  await redis.config("SET", "maxmemory", "1");
  await driver.drive(4000);
  await redis.config("SET", "maxmemory", "0");
  redis.disconnect();
  const watch = startWatch();
  const saw = await expectWhole(follower, driver, daemon);
  tell({ saw: `${saw}; slowest answer ${driver.slowestMs.toFixed(0)} ms`, recoveryMs: watch.since() });
});
