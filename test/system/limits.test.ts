import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { intrude } from "../proof/isolation/intrude.js";
import { findMainProcess } from "../proof/isolation/programs.js";
import { workspaceOf } from "../support/browser/browser-processes.js";
import { until } from "../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../support/daemon/daemon.js";
import { redisPidIn } from "../support/daemon/said.js";
import { refusedUpgrade } from "../support/gateway/gateway-bed.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";
import { toldWhen } from "../support/telemetry/told-events.js";

/** This is the smallest limit that settings allow, so that a test stores little. */
const maxScratchBytes = 64 * 2 ** 20;
const maxScratchFiles = 5000;
/** A browser that shares the machine with many others takes as long to use up what it may have. */
const limitMs = 240_000;

let site: Server;
let origin: string;
beforeAll(async () => {
  site = createServer((_, response) =>
    response.setHeader("content-type", "text/html").end("<!doctype html><title>site</title>"),
  ).listen(0, "127.0.0.1");
  await once(site, "listening");
  // Storage is for secure origins, and localhost is one.
  origin = `http://localhost:${(site.address() as AddressInfo).port}/`;
});
afterAll(() => {
  site.closeAllConnections();
  return new Promise((resolve) => void site.close(resolve));
});

interface Tenant {
  readonly lease: Lease;
  readonly client: RawCdp;
  readonly page: string;
}

/** A program that has taken over a browser's process; it goes on in there. */
const hideIn =
  (daemon: Daemon, script: string) =>
  async ({ lease }: Tenant): Promise<void> => {
    const root = workspaceOf(daemon.place.scratchDirectory, lease.session_id);
    const place = { kind: "browser", pid: await findMainProcess(root) } as const;
    await intrude(place, [script], {
      own: root,
      nonce: lease.session_id,
      bound: 1200,
      seconds: limitMs / 1000,
    });
  };

async function startTenant(daemon: Daemon): Promise<Tenant> {
  const wanted = { headless: true, telemetry: { enabled: true } };
  const { status, body, text } = await daemon.call("POST /browsers", wanted);
  if (status !== 200 && status !== 201) throw new Error(`no session: ${text}`);
  const lease = body as Lease;
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  await client.send("Page.navigate", { url: origin }, page);
  await until("the site", () =>
    client.evaluate("document.title === 'site' && document.readyState === 'complete'", page),
  );
  return { lease, client, page };
}

/** While the offender does as it likes, its neighbour answers, and its own end says why. */
async function expectRetired(
  daemon: Daemon,
  offend: (offender: Tenant) => Promise<void>,
  reason: string,
): Promise<void> {
  const [offender, neighbour] = [await startTenant(daemon), await startTenant(daemon)];
  let said = "it goes on";
  // Its end breaks off what it does.
  offend(offender).catch((error: unknown) => void (said = String(error)));
  const { session_id: id } = offender.lease;
  const isOver = async () => {
    expect(await neighbour.client.evaluate("1 + 1", neighbour.page)).toBe(2);
    const { body } = await daemon.call(`GET /browsers/${id}?include_deleted=true`);
    return body.deleted_at && body;
  };
  const over = await until("the offender's end", isOver, limitMs).catch((cause: unknown) => {
    throw new Error(`the offender has not ended: ${said}`, { cause });
  });
  expect(over).toMatchObject({ reason });
  await offender.client.closed;
  expect(await refusedUpgrade(offender.lease.cdp_ws_url)).toMatchObject({
    status: 410,
    body: { code: "browser_gone", message: expect.stringContaining(reason) },
  });
  await expectOnRecord(daemon, offender.lease, reason);
  expect((await daemon.call("GET /metrics")).text).toMatch(
    new RegExp(`remuda_limit_retirements_total{limit="${reason}"} [1-9]`),
  );
  expect(await neighbour.client.evaluate("1 + 1", neighbour.page)).toBe(2);
  await neighbour.client.close();
  await daemon.call(`DELETE /browsers/${neighbour.lease.session_id}`);
}

/** Its holder is told of memory that ran out, and finds there what it did last. */
async function expectOnRecord(daemon: Daemon, lease: Lease, reason: string): Promise<void> {
  const recorded = await daemon.call(`GET /browsers/${lease.session_id}/flight_recording`);
  if (reason !== "memory_exceeded") {
    expect(recorded.status).toBe(404);
    const path = `/browsers/${lease.session_id}/telemetry/events?since=1h&type=system_oom_kill`;
    return expect(await daemon.call(`GET ${path}`)).toMatchObject({ status: 200, body: [] });
  }
  const { data } = await toldWhen(daemon, lease, { type: "system_oom_kill" });
  expect(data).toEqual({
    pid: expect.any(Number),
    process_name: "chromium",
    constraint: "memcg",
    rss_kb: expect.any(Number),
  });
  expect(data["rss_kb"]).toBeGreaterThan(2 ** 20);
  const { body } = recorded;
  expect(body).toMatchObject({ session_id: lease.session_id, reason, memory: { limit_bytes: 2 ** 30 } });
  const states = (body.states as { state: string }[]).map(({ state }) => state);
  expect(states.slice(-2)).toEqual(["memory_pressure", "memory_exceeded"]);
}

/** A process is refused more than its class; two that are not are too much together. */
const hogMemory = async ({ client, page }: Tenant): Promise<void> => {
  const take =
    "globalThis.held = []; try { for (let at = 0; at < 44; at += 1) held.push(new Uint8Array(2 ** 24).fill(1)); } catch {} held.length";
  const { result } = await client.send("Target.createTarget", {
    url: origin.replace("localhost", "127.0.0.1"),
  });
  const other = await client.attach(result?.["targetId"] as string);
  await Promise.all([client.evaluate(take, page), client.evaluate(take, other)]);
};
const evaluating =
  (expression: string) =>
  async ({ client, page }: Tenant): Promise<void> =>
    void (await client.evaluate(expression, page));
const fillCache = evaluating(`(async () => {
  const cache = await caches.open("filled");
  for (let at = 0; at < 100; at += 1) await cache.put("/filled/" + at, new Response(new Uint8Array(2 ** 20).map(() => Math.random() * 256)));
  await new Promise(() => {});
})()`);
const makeFiles = evaluating(`(async () => {
  const cache = await caches.open("many");
  for (let at = 0; at < 10000; at += 50) await Promise.all(Array.from({ length: 50 }, (_, more) => cache.put("/many/" + (at + more), new Response("x"))));
  await new Promise(() => {});
})()`);

describe("where nothing of the kernel holds browsers, the watch retires the one that has too much", () => {
  let daemon: Daemon;
  beforeAll(async () => {
    daemon = await startDaemon({
      file: {
        node: {
          cgroups: false,
          scratch_mounts: false,
          memory_watch_period_ms: 200,
          storage_watch_period_seconds: 1,
        },
        browser: { max_scratch_bytes: maxScratchBytes, max_scratch_files: maxScratchFiles },
      },
    });
  });
  afterAll(() => daemon.stop());

  test("of memory", () => expectRetired(daemon, hogMemory, "memory_exceeded"), 2 * limitMs);
  // Another user's program cannot be put into a process namespace without root.
  test.runIf(process.getuid?.() === 0).each([
    ["that no process maps", "unmapped_memory"],
    ["in a file system of its own", "mounted_memory"],
    ["in a file system that has no bound", "unbounded_mount"],
  ])(
    "of shared memory %s",
    (_, script) => expectRetired(daemon, hideIn(daemon, script), "memory_exceeded"),
    2 * limitMs,
  );
  test("of bytes stored", () => expectRetired(daemon, fillCache, "storage_exceeded"), 2 * limitMs);
  test.runIf(process.getuid?.() === 0)(
    "of bytes in a file that has no name any more",
    () => expectRetired(daemon, hideIn(daemon, "unlinked_disk"), "storage_exceeded"),
    2 * limitMs,
  );
  test("of files", () => expectRetired(daemon, makeFiles, "storage_exceeded"), 2 * limitMs);
});

test.runIf(process.getuid?.() === 0)(
  "the private Redis has the daemon's share of the processors, and gives it back at the end",
  async () => {
    const cpuGroupOf = async (pid: number): Promise<string | undefined> =>
      /^(?:\d+:(?:[^:]*,)?cpu(?:,[^:]*)?|0:):(.*)$/m.exec(
        await readFile(`/proc/${pid}/cgroup`, "latin1"),
      )?.[1];
    const before = await cpuGroupOf(process.pid);
    const daemon = await startDaemon();
    const during = await cpuGroupOf(process.pid);
    expect(during).toContain("remuda-daemon-");
    expect(await cpuGroupOf(redisPidIn(daemon.log))).toBe(during);
    await daemon.stop();
    expect(await cpuGroupOf(process.pid)).toBe(before);
  },
);
