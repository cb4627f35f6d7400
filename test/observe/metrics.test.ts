import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { pause, systemClock } from "../../src/base/clock.js";
import { onDemandLabel } from "../../src/base/ids.js";
import { Metrics, type NodeGauge, type PoolGauge } from "../../src/observe/metrics.js";
import { metricsTable } from "../../src/observe/metrics-table.js";
import { makeLogBook } from "../support/http/http-server.js";

const { log } = makeLogBook();
const reading = (pool: string): PoolGauge => ({ pool, states: { idle: 2, leased: 1 }, waiting: 4 });

function metricsOf(pools: () => Promise<readonly PoolGauge[]>, nodes: readonly NodeGauge[] = []): Metrics {
  return new Metrics({
    clock: systemClock,
    log,
    aheadMs: async () => 0,
    gauges: { pools, nodes: async () => nodes },
  });
}

test("docs/metrics.md lists exactly these (node scripts/bootstrap.mjs settings writes it)", async () => {
  const page = await readFile(new URL("../../docs/metrics.md", import.meta.url), "utf8");
  const block = /<!-- metrics -->\n([\s\S]*?)\n<!-- \/metrics -->/.exec(page)?.[1];
  expect(block).toBe(metricsTable(await metricsOf(async () => []).text()));
});

test("a scrape shows what the store holds now, and what this process has counted", async () => {
  const metrics = metricsOf(async () => [reading("herd")], [{ state: "ready", count: 3 }]);
  metrics.acquired("herd", "granted", 1.5);
  metrics.launched("herd");
  metrics.launchFailed("herd", "time_limit");
  metrics.leaseEnded(onDemandLabel, "released");
  metrics.connected();
  metrics.connected();
  metrics.disconnected();
  metrics.carried("to_client", 10);
  metrics.refused("gone");
  const text = await metrics.text();
  for (const line of [
    'remuda_pool_browsers{pool="herd",state="idle"} 2',
    'remuda_pool_waiters{pool="herd"} 4',
    'remuda_nodes{state="ready"} 3',
    'remuda_acquire_wait_seconds_bucket{le="0.002",pool="herd",outcome="granted"} 1',
    'remuda_acquire_wait_seconds_bucket{le="0.001",pool="herd",outcome="granted"} 0',
    'remuda_launches_total{pool="herd"} 1',
    'remuda_launch_failures_total{pool="herd",reason="time_limit"} 1',
    'remuda_leases_ended_total{pool="(on demand)",reason="released"} 1',
    "remuda_gateway_connections 1",
    'remuda_gateway_bytes_total{direction="to_client"} 10',
    'remuda_gateway_refusals_total{reason="gone"} 1',
    "remuda_store_up 1",
  ])
    expect(text).toContain(`${line}\n`);
  expect(text).toMatch(/process_resident_memory_bytes \d{7,}\n/);
});

test("a scrape tells how late the event loop was since the last one", async () => {
  const metrics = metricsOf(async () => []);
  const longest = async (): Promise<number> =>
    Number(/remuda_event_loop_delay_seconds\{quantile="1"\} (\S+)/.exec(await metrics.text())?.[1]);
  await pause(systemClock, 30);
  for (const endsAt = performance.now() + 300; performance.now() < endsAt;);
  await pause(systemClock, 30);
  expect(await longest()).toBeGreaterThan(0.25);
  await expect.poll(longest).toBeLessThan(0.25);
});

test("a pool that is gone takes all its series along, and the others stay", async () => {
  let pools = [reading("old"), reading("new")];
  const metrics = metricsOf(async () => pools);
  for (const pool of ["old", "new", onDemandLabel]) {
    metrics.acquired(pool, "granted", 1);
    metrics.launched(pool);
    metrics.launchFailed(pool, "crashed");
    metrics.leaseEnded(pool, "expired");
  }
  expect(await metrics.text()).toContain('pool="old"');
  pools = [reading("new")];
  const text = await metrics.text();
  expect(text).not.toContain('"old"');
  expect(text).toContain('remuda_acquire_wait_seconds_count{pool="new",outcome="granted"} 1');
  expect(text).toContain('remuda_launches_total{pool="(on demand)"} 1');
});

test("while the store cannot be read its gauges are absent and what was counted stays", async () => {
  let isUp = true;
  const metrics = metricsOf(async () => {
    if (!isUp) throw new Error("down");
    return [reading("herd")];
  });
  metrics.launched("herd");
  await metrics.text();
  isUp = false;
  const text = await metrics.text();
  expect(text).not.toContain("remuda_pool_browsers{");
  expect(text).toContain("remuda_store_up 0");
  expect(text).toContain('remuda_launches_total{pool="herd"} 1');
});

test("a reason that is a text and not a word makes no series of its own", async () => {
  const metrics = new Metrics({ clock: systemClock, log, aheadMs: async () => 0 });
  metrics.launchFailed("herd", "Chromium said: 17:03:11 no");
  metrics.launchFailed("herd", "another text 12");
  expect(await metrics.text()).toContain('remuda_launch_failures_total{pool="herd",reason="other"} 2');
});

test("a node, which reads nothing from the store, says whether it is there", async () => {
  let isThere = true;
  const metrics = new Metrics({
    clock: systemClock,
    log,
    aheadMs: () => (isThere ? Promise.resolve(1500) : Promise.reject(new Error("no Redis"))),
  });
  metrics.launched("herd");
  const before = await metrics.text();
  expect(before).toContain("remuda_store_up 1\n");
  expect(before).toContain("remuda_clock_ahead_seconds 1.5\n");
  isThere = false;
  const text = await metrics.text();
  expect(text).toContain("remuda_store_up 0\n");
  expect(text).not.toContain("\nremuda_clock_ahead_seconds");
  expect(text).toContain('remuda_launches_total{pool="herd"} 1\n');
});
