import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { connectBidi } from "../../support/gateway/raw-bidi.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { openMonitoredSite } from "../../support/telemetry/monitored-site.js";
import { callerSpan, exportSettings, secret, TraceBed } from "../../support/telemetry/trace-bed.js";

let site: Awaited<ReturnType<typeof openMonitoredSite>>;
let daemon: Daemon;
let bed: TraceBed;
beforeAll(async () => {
  site = await openMonitoredSite();
  daemon = await startDaemon({ file: exportSettings });
});
afterAll(async () => {
  await daemon.stop();
  await site.close();
});
beforeEach(() => {
  bed = new TraceBed(daemon);
});
afterEach(() => bed.receiver.close());

test("a socket's own trace is its own, linked to the acquire; who is not sampled, or malformed, has no spans", async () => {
  const pool = "sockets";
  await daemon.makePool({ name: pool, telemetry: { enabled: true, export: await bed.start(pool) } });
  const [caller, own, unsampled] = [callerSpan(), callerSpan(), callerSpan("00")];
  const lease = await bed.acquire(pool, caller.headers);
  const drive = async (headers: Record<string, string>) => {
    const client = await connectRaw(lease.cdp_ws_url, headers);
    await client.send("Browser.getVersion");
    await client.send("Target.createTarget", { url: `${site.url}/${secret}` });
    await client.close();
  };
  await drive(own.headers);
  await drive(unsampled.headers);
  await drive({ traceparent: "00-nonsense" });
  const connect = await bed.span("connect", ({ traceId }) => traceId === own.traceId);
  const acquired = await bed.span("acquire");
  expect(acquired.links).toEqual([]);
  expect(connect).toMatchObject({
    parentId: own.spanId,
    links: [{ traceId: caller.traceId, spanId: acquired.spanId }],
    attributes: { "remuda.connection.protocol": "cdp" },
  });
  const first = await bed.span("first command", ({ traceId }) => traceId === own.traceId);
  expect(first.parentId).toBe(connect.spanId);
  // A header that is none counts as if it were not there.
  const third = await bed.span("connect", ({ parentId }) => parentId === acquired.spanId);
  await bed.span("first command", ({ parentId }) => parentId === third.spanId);
  await bed.release(lease, pool);
  expect(bed.receiver.spans.map(({ name }) => name).toSorted()).toEqual(
    ["acquire", "connect", "connect", "first command", "first command", "hand-out"].toSorted(),
  );
  // No page is told where `page` is off.
  expect(bed.sent).toContain("remuda");
  expect(bed.sent).not.toContain(secret);
});

test("a lease without a trace has no spans, whatever its acquire sent instead, until a client brings one", async () => {
  const pool = "untraced";
  await daemon.makePool({ name: pool, telemetry: { enabled: true, export: await bed.start(pool) } });
  const wrong = [callerSpan("00").headers, { traceparent: `00-${"0".repeat(32)}-${"1".repeat(16)}-01` }, {}];
  for (const headers of wrong) {
    const lease = await bed.acquire(pool, headers as Record<string, string>);
    const client = await connectRaw(lease.cdp_ws_url);
    await client.send("Target.createTarget", { url: "about:blank" });
    await client.close();
    await bed.release(lease, pool);
  }
  const told = () => bed.receiver.records.filter(({ type }) => type === "cdp_disconnect");
  await until("all clients' ends", () => told().length === wrong.length);
  expect([bed.receiver.spans, told().map(({ traceId }) => traceId)]).toEqual([
    [],
    wrong.map(() => undefined),
  ]);

  const lease = await bed.acquire(pool);
  const own = callerSpan();
  const client = await connectBidi(lease.webdriver_ws_url, own.headers);
  await client.open(await client.begin(), site.url);
  const connect = await bed.span("connect");
  expect(connect).toMatchObject({
    traceId: own.traceId,
    parentId: own.spanId,
    links: [],
    attributes: { "remuda.connection.protocol": "bidi" },
  });
  expect(await bed.span("first command")).toMatchObject({
    parentId: connect.spanId,
    attributes: { "rpc.method": "Page.navigate" },
  });
  await client.close();
  await bed.release(lease, pool);
});

test("a session on demand is traced from its creation, through its launch", async () => {
  const caller = callerSpan();
  await bed.start("created");
  const telemetry = { enabled: true, export: { otlp: { destination: { name: "created" } } } };
  const body = { headless: true, telemetry };
  const { status, body: session } = await daemon.call("POST /browsers", body, caller.headers);
  expect(status).toBe(200);
  const create = await bed.span("create");
  expect(create).toMatchObject({ traceId: caller.traceId, parentId: caller.spanId });
  for (const name of ["launch", "hand-out"]) expect((await bed.span(name)).parentId).toBe(create.spanId);
  const client = await connectRaw((session as Lease).cdp_ws_url);
  expect((await bed.span("connect")).parentId).toBe(create.spanId);
  await client.close();
  await daemon.call(`DELETE /browsers/${(session as Lease).session_id}`);
});
