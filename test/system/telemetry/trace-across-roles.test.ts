import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { openMonitoredSite } from "../../support/telemetry/monitored-site.js";
import type { ReceivedSpan } from "../../support/telemetry/otlp-receiver.js";
import { callerSpan, exportSettings, secret, TraceBed } from "../../support/telemetry/trace-bed.js";

let redis: TestRedis;
let site: Awaited<ReturnType<typeof openMonitoredSite>>;
let running: DaemonProcess[];
beforeEach(async () => {
  [redis, site] = await Promise.all([startRedis(), openMonitoredSite()]);
  running = [];
});
afterEach(async () => {
  // The node first: a control has nothing to wait for.
  for (const daemon of running.toReversed()) await daemon.stop();
  await Promise.all([redis.stop(), site.close()]);
});
async function start(role: "control" | "node"): Promise<DaemonProcess> {
  const file = { drain: { limit_seconds: 0 }, ...exportSettings };
  const daemon = await spawnDaemon(new DaemonPlace({ role, redisUrl: redis.url, file }));
  running.push(daemon);
  return daemon;
}

test("one trace leads from an acquire that waited to its client, its first command and what it opened", async () => {
  const control = await start("control");
  const node = await start("node");
  const bed = new TraceBed(control);
  onTestFinished(() => bed.receiver.close());
  const pool = "traced";
  const browser = { page: { enabled: true }, platform: { enabled: true } };
  const telemetry = { enabled: true, browser, export: await bed.start(pool) };
  await control.makePool({ name: pool, telemetry });
  const former = await bed.acquire(pool);
  const caller = callerSpan();
  const waiting = bed.acquire(pool, { ...caller.headers, tracestate: "rojo=1, congo=2" });
  await control.poolWhen(pool, ({ waiting_count: count }) => count === 1);
  await bed.release(former, pool);
  const lease = await waiting;
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  await client.send("Page.navigate", { url: site.url }, page);
  const isOurs = ({ attributes }: ReceivedSpan) => String(attributes["url.full"]).startsWith(site.url);
  const navigation = await bed.span("navigation", isOurs);
  await client.send("Input.insertText", { text: secret }, page);
  const acquired = await bed.span("acquire");
  const [wait, handOut] = [await bed.span("wait"), await bed.span("hand-out")];
  const [connect, first] = [await bed.span("connect"), await bed.span("first command")];
  const all = [acquired, wait, handOut, connect, first, navigation];
  expect(all.map(({ traceId, state }) => [traceId, state])).toEqual(
    all.map(() => [caller.traceId, "rojo=1,congo=2"]),
  );
  expect(all.map(({ parentId }) => parentId)).toEqual([
    caller.spanId,
    acquired.spanId,
    acquired.spanId,
    acquired.spanId,
    connect.spanId,
    acquired.spanId,
  ]);
  expect(new Set(all.map(({ spanId }) => spanId)).size).toBe(all.length);
  for (const { from, until: end } of all) expect(end >= from).toBe(true);
  expect([wait.from >= acquired.from, handOut.from === wait.until, handOut.until === acquired.until]).toEqual(
    [true, true, true],
  );
  const [server, internal] = [2, 1];
  expect(all.map(({ kind }) => kind)).toEqual([server, internal, internal, server, internal, internal]);
  expect(first.attributes).toMatchObject({ "rpc.method": "Page.navigate" });
  expect(navigation.attributes).toMatchObject({ "remuda.navigation.end": "loaded" });
  const resource = { "service.name": "remuda-browser", "session.id": lease.session_id };
  for (const span of all) expect(span.resource).toMatchObject({ ...resource, "remuda.pool.name": pool });
  expect(bed.receiver.requests.map(({ path }) => path)).toEqual(
    expect.arrayContaining(["/otlp/v1/traces", "/otlp/v1/logs"]),
  );
  const record = await until("a record", () =>
    bed.receiver.records.find(({ type }) => type === "cdp_connect"),
  );
  const records = () =>
    bed.receiver.records.filter(({ resource: of }) => of["remuda.lease.id"] === lease.lease_id);
  expect(record.resource["remuda.lease.id"]).toBe(lease.lease_id);
  await client.close();
  await bed.release(lease, pool);
  // The control tells of the call once the lease is over.
  await until("the release", () => records().find(({ type }) => type === "platform_api_call"));
  for (const { type, traceId, spanId } of records())
    expect([type, traceId, spanId]).toEqual([type, caller.traceId, acquired.spanId]);
  expect(bed.sent).toContain("remuda");
  expect(bed.sent).not.toContain(secret);
  expect(control.log + node.log).not.toContain(caller.traceId);
});
