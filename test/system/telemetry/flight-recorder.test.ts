import { afterAll, beforeAll, expect, test } from "vitest";
import { KernelLog } from "../../../src/browser/resources/kernel-log.js";
import type { FlightRecording } from "../../../src/spec/flight-recording.js";
import { processesOf, renderersBeside } from "../../support/browser/browser-processes.js";
import { openSite } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import type { Got } from "../../support/http/http-server.js";
import { isLiving, signal } from "../../support/living.js";
import { openRedisProxy } from "../../support/store/redis-proxy.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { toldWhen } from "../../support/telemetry/told-events.js";

let redis: TestRedis;
let daemon: Daemon;
beforeAll(async () => {
  redis = await startRedis();
  daemon = await startDaemon({ redisUrl: redis.url });
});
afterAll(async () => {
  await daemon.stop();
  await redis.stop();
});

/** Where clouds tell machines their keys: no browser gets there unless its rules name it. */
const denied = "169.254.169.254";
/** What nothing of may be told: typed, run, visited, invented. */
const secrets = ["typed-hunter2", "script-hunter2", "path-hunter2", "query-hunter2", "Method.hunter2"];

const acquire = async (pool: string): Promise<Lease> =>
  (await daemon.call(`POST /browser_pools/${pool}/acquire`, { acquire_timeout_seconds: 30 })).body as Lease;
const read = ({ session_id: id }: Lease): Promise<Got> => daemon.call(`GET /browsers/${id}/flight_recording`);
const told = async (lease: Lease): Promise<FlightRecording> => (await read(lease)).body as FlightRecording;
const statesOf = ({ states }: FlightRecording): string[] => states.map(({ state }) => state);
const methodsOf = ({ commands }: FlightRecording): string[] => commands.last.map(({ method }) => method);

/** What is stored of ends by a fault, as Redis holds it. */
async function storedBytes(): Promise<string> {
  const client = redis.client();
  try {
    return JSON.stringify(await client.hgetall("remuda:{project-default}:flightRecordings"));
  } finally {
    client.disconnect();
  }
}

test("a holder reads what its browser did last, the next holder nothing of it, and a crash keeps it", async () => {
  await daemon.makePool({ name: "flights" });
  const first = await acquire("flights");
  const client = await connectRaw(first.cdp_ws_url);
  const page = await client.attach();
  await client.send("Input.insertText", { text: secrets[0] }, page);
  await client.evaluate(`"${secrets[1]}"`, page);
  await client.send("Page.navigate", { url: `http://${denied}/${secrets[2]}?${secrets[3]}` }, page);
  await client.send(secrets[4] ?? "", {}, page);

  const live = await read(first);
  expect(live.status).toBe(200);
  const recording = live.body as FlightRecording;
  expect(recording).toMatchObject({ session_id: first.session_id, reason: "requested" });
  expect(methodsOf(recording).slice(-4)).toEqual([
    "Input.insertText",
    "Runtime.evaluate",
    "Page.navigate",
    "other",
  ]);
  expect(recording.failed_requests).toMatchObject([{ host: denied, count: expect.any(Number) }]);
  expect(statesOf(recording).slice(-2)).toEqual(["launched", "leased"]);
  for (const secret of secrets) expect(live.text).not.toContain(secret);

  await daemon.call("POST /browser_pools/flights/release", { session_id: first.session_id });
  const second = await acquire("flights");
  expect(second.session_id).toBe(first.session_id);
  const next = await told(second);
  expect(next).toMatchObject({ commands: { count: 0, last: [] }, failed_requests: [] });
  expect(statesOf(next).slice(-3)).toEqual(["leased", "released", "leased"]);

  const again = await connectRaw(second.cdp_ws_url);
  const theirs = await again.attach();
  await again.evaluate(`"${secrets[1]}"`, theirs);
  signal((await processesOf(daemon.place.scratchDirectory, second.session_id)).main, "SIGKILL");
  const dead = await until("what the crash left", async () => {
    const got = await told(second);
    return got.reason === "crashed" ? got : undefined;
  });
  expect(methodsOf(dead).at(-1)).toBe("Runtime.evaluate");
  expect(dead.commands.count).toBeLessThan(recording.commands.count);
  expect(statesOf(dead).slice(-2)).toEqual(["exited", "crashed"]);
  const former = { "x-remuda-lease-id": first.lease_id };
  const kept = `GET /browsers/${second.session_id}/flight_recording`;
  expect(await daemon.call(kept, undefined, former)).toMatchObject({
    status: 409,
    body: { code: "lease_superseded" },
  });
  const stored = await storedBytes();
  expect(stored).toContain(second.session_id);
  for (const secret of secrets) expect(stored).not.toContain(secret);
  const { body } = await daemon.call("GET /browser_pools/flights/flight_recordings");
  expect(body).toMatchObject([{ session_id: second.session_id, reason: "crashed" }]);
});

test("while a holder captures its console, the hosts of scripts that report errors are there too, and nothing of what they say", async () => {
  const site = await openSite();
  await daemon.makePool({ name: "loud" });
  const lease = await acquire("loud");
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  await client.send("Page.navigate", { url: `${site.origin}/${secrets[2]}?${secrets[3]}` }, page);
  const complain = `console.error("${secrets[0]}"); setTimeout(() => { throw new Error("${secrets[1]}") })`;
  await client.evaluate(complain, page);
  expect((await told(lease)).console_errors).toEqual([]);
  const capture = { telemetry: { browser: { console: { enabled: true } } } };
  expect((await daemon.call(`PATCH /browsers/${lease.session_id}`, capture)).status).toBe(200);
  const text = await until("errors of both kinds", async () => {
    await client.evaluate(complain, page);
    const got = await read(lease);
    const [first] = (got.body as FlightRecording).console_errors;
    return first && first.count >= 2 ? got.text : undefined;
  });
  expect((JSON.parse(text) as FlightRecording).console_errors[0]?.host).toBe(new URL(site.origin).hostname);
  for (const secret of secrets) expect(text).not.toContain(secret);
  await client.close();
  await daemon.call("POST /browser_pools/loud/release", { session_id: lease.session_id });
  expect((await told(await acquire("loud"))).console_errors).toEqual([]);
  await site.close();
});

test("a browser that crashes while Redis is away has its recording when Redis is back", async () => {
  const way = await openRedisProxy(redis.url);
  const patient = {
    node: { beat_period_ms: 500, lost_after_ms: 60_000 },
    acquire: { control_beat_period_ms: 500, control_lost_after_ms: 60_000 },
  };
  const other = await startDaemon({ redisUrl: way.url, file: patient });
  const lease = (await other.call("POST /browsers", { headless: true })).body as Lease;
  const client = await connectRaw(lease.cdp_ws_url);
  await client.evaluate("1", await client.attach());
  await way.cut();
  signal((await processesOf(other.place.scratchDirectory, lease.session_id)).main, "SIGKILL");
  await until("what could not be kept", () => other.log.includes("flight recording could not be kept yet"));
  await way.restore();
  const kept = await until("what was kept at last", async () => {
    const { body } = await other.call(`GET /browsers/${lease.session_id}/flight_recording`);
    return body.reason === "crashed" ? (body as FlightRecording) : undefined;
  });
  expect(methodsOf(kept).at(-1)).toBe("Runtime.evaluate");
  await other.stop();
  await way.close();
});

test("a browser whose page took all its memory says so", async () => {
  await daemon.makePool({ name: "greedy", memory: "1GiB", telemetry: { enabled: true } });
  const lease = await acquire("greedy");
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  const { main = 0 } = await processesOf(daemon.place.scratchDirectory, lease.session_id);
  const renderers = renderersBeside(main);
  const greed = "globalThis.held = []; for (;;) held.push(new Uint8Array(2 ** 24).fill(1))";
  client.evaluate(greed, page).catch(() => {});
  // The kernel may end the browser besides the page that took the memory.
  const recording = await until(
    "its end for want of memory",
    async () => {
      const got = await told(lease);
      const states = got.states ? statesOf(got) : [];
      const isOver = states.includes("page_crashed") || states.includes("exited");
      return isOver && states.includes("out_of_memory") ? got : undefined;
    },
    100_000,
  );
  expect(recording.memory).toMatchObject({ limit_bytes: 2 ** 30 });
  expect(recording.memory.out_of_memory_kills).toBeGreaterThan(0);
  expect(recording.memory.peak_bytes).toBeGreaterThan(0.9 * 2 ** 30);
  const { data, source } = await toldWhen(daemon, lease, { type: "system_oom_kill" });
  expect(source).toEqual({ kind: "local_process" });
  expect(data).toEqual({
    pid: expect.any(Number),
    process_name: expect.any(String),
    rss_kb: expect.any(Number),
    constraint: "memcg",
  });
  const kernelLog = KernelLog.open("none");
  kernelLog?.close();
  // The page had nearly all of it; without the kernel's log that is known of the browser alone.
  expect(data["rss_kb"]).toBeGreaterThan(2 ** 19);
  if (kernelLog) {
    expect(renderers).toContain(data["pid"]);
    // The kernel says whom it kills before that has ended.
    await until("its end", () => !isLiving(Number(data["pid"])));
  } else expect(data["pid"]).toBe(main);
});

test("a session that ended in order left none, and one that never was is unknown", async () => {
  await daemon.makePool({ name: "orderly" });
  const lease = await acquire("orderly");
  await daemon.call(`DELETE /browsers/${lease.session_id}`);
  expect(await read(lease)).toMatchObject({ status: 404 });
  expect(await daemon.call("GET /browsers/nobody/flight_recording")).toMatchObject({
    status: 404,
    body: { code: "browser_not_found" },
  });
  expect((await daemon.call("GET /browser_pools/nobody/flight_recordings")).status).toBe(404);
});
