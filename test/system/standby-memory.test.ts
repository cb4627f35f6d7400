import { describe, expect, onTestFinished, test } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import { type DaemonProcess, spawnDaemon } from "../support/daemon/daemon-process.js";
import { DaemonPlace } from "../support/daemon/daemon-settings.js";
import { canLimitMemory, MemoryLimit } from "../support/node/memory-limit.js";
import { startRedis } from "../support/store/redis.js";

const mebi = 2 ** 20;
const shape = { headless: true, count: 3 };

/** A daemon whose browsers and whose own processes share so much memory, of which a third is to be left. */
async function startIn(limit: MemoryLimit): Promise<DaemonProcess> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const file = {
    standby: [shape],
    node: {
      min_free_memory_percent: 30,
      memory_watch_period_ms: 100,
      beat_period_ms: 10_000,
      lost_after_ms: 60_000,
    },
  };
  return await spawnDaemon(new DaemonPlace({ role: "all", redisUrl: redis.url, file }), limit.through);
}

/** The value of a series in what the daemon shows now. */
async function shown(daemon: DaemonProcess, series: string): Promise<number> {
  const { text } = await daemon.call("GET /metrics");
  const line = text.split("\n").find((one) => one.startsWith(`${series} `));
  return Number(line?.slice(series.length) ?? Number.NaN);
}
const standBy = (daemon: DaemonProcess, count: number): Promise<unknown> =>
  until(
    `${count} that stand by`,
    async () => (await shown(daemon, 'remuda_standby_browsers{state="idle"}')) === count,
  );
const sessions = async (daemon: DaemonProcess): Promise<readonly number[]> =>
  await Promise.all(
    ["taken", "missed"].map((outcome) =>
      shown(daemon, `remuda_standby_sessions_total{outcome="${outcome}"}`),
    ),
  );

async function create(daemon: DaemonProcess): Promise<Lease> {
  const { status, body, text } = await daemon.call("POST /browsers", { headless: true });
  if (status !== 200) throw new Error(`no session: ${text}`);
  return body as Lease;
}

describe.runIf(canLimitMemory)("where the memory of processes can be bounded", () => {
  test("browsers that stand by end where their node's memory is short, sessions go on, and they come back", async () => {
    const limit = new MemoryLimit("standby", 2048 * mebi);
    onTestFinished(() => limit.remove());
    const daemon = await startIn(limit);
    await standBy(daemon, 3);
    const lent = await create(daemon);
    await standBy(daemon, 3);

    const giveBack = await limit.take(1350 * mebi);
    await standBy(daemon, 0);
    await until("their count", async () => (await shown(daemon, "remuda_standby_ended_total")) === 3);
    expect(await shown(daemon, "remuda_memory_available_bytes")).toBeLessThan(614 * mebi);
    expect((await daemon.call(`GET /browsers/${lent.session_id}`)).status).toBe(200);
    const launched = await create(daemon);
    expect(await sessions(daemon)).toEqual([1, 1]);

    await giveBack();
    await standBy(daemon, 3);
    const taken = await create(daemon);
    expect(await sessions(daemon)).toEqual([2, 1]);
    for (const { session_id: id } of [lent, launched, taken])
      expect((await daemon.call(`DELETE /browsers/${id}`)).status).toBe(204);
    await daemon.stop();
  });
});
