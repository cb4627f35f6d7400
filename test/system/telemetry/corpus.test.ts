import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TelemetryEvent } from "../../../src/telemetry/event.js";
import { processesOf } from "../../support/browser/browser-processes.js";
import { kinds } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { signalLiving } from "../../support/living.js";
import { typesOfDaemons } from "../../support/telemetry/corpus.js";
import { lackedBy } from "../../support/telemetry/official-events.js";
import { toldTo } from "../../support/telemetry/told-events.js";

const on = { enabled: true };
const telemetry = { enabled: true, browser: { platform: on, console: on } };
const solved = { captcha_type: "hcaptcha", status: "success", duration_ms: 1, website_host: "a.example" };

/** Takes all memory that there is. */
const greed = "globalThis.held = []; for (;;) held.push(new Uint8Array(2 ** 24).fill(1))";

/**
 * Leaves the control group of a process so much more memory than it has: the classes of browsers with windows
 * begin at 8 GiB, which no test should take.
 */
async function leaveMemory(pid: number, bytes: number): Promise<void> {
  const groups = await readFile(`/proc/${pid}/cgroup`, "utf8");
  const old = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m.exec(groups)?.[1];
  const unified = /^0::(.*)$/m.exec(groups)?.[1];
  const [path, held, most] =
    old === undefined
      ? [`/sys/fs/cgroup${unified}`, "memory.current", "memory.max"]
      : [`/sys/fs/cgroup/memory${old}`, "memory.usage_in_bytes", "memory.limit_in_bytes"];
  const now = Number(await readFile(join(path, held), "utf8"));
  await writeFile(join(path, most), String(now + bytes));
}

/** Each type of event that takes a daemon, with one action that causes it, in each way Chromium runs. */
describe.each(kinds)("%s", (_name, { engine, headless }) => {
  let daemon: Daemon;
  let lease: Lease;
  beforeAll(async () => {
    daemon = await startDaemon({ file: { browser: { engine } } });
    const wanted = { headless, timeout_seconds: 600, telemetry };
    lease = (await daemon.call("POST /browsers", wanted)).body as Lease;
  });
  afterAll(() => daemon.stop());

  /** What was told of each type when it was looked for: what a flood writes may put it out of the stream. */
  const caused = new Map<string, readonly TelemetryEvent[]>();
  const read = async (type: (typeof typesOfDaemons)[number]): Promise<readonly TelemetryEvent[]> => {
    const events = await toldTo(daemon, lease, type);
    if (events.length > 0) caused.set(type, events);
    return events;
  };
  const told = (type: (typeof typesOfDaemons)[number], fields: object): Promise<unknown> =>
    until(
      `${type} is told`,
      async () =>
        (await read(type)).find(({ data }) =>
          Object.entries(fields).every(([name, value]) => data[name] === value),
        ),
      110_000,
    );
  const mainOf = async (): Promise<number | undefined> =>
    (await processesOf(daemon.place.scratchDirectory, lease.session_id)).main;
  const connect = async (): Promise<{ client: RawCdp; page: string }> => {
    const client = await connectRaw(lease.cdp_ws_url);
    return { client, page: await client.attach() };
  };

  test("a client comes, drives and goes", async () => {
    const { client, page } = await connect();
    await client.send("Page.reload", {}, page);
    await client.close();
    await told("cdp_connect", {});
    await told("cdp_command", { method: "Page.reload" });
    await told("cdp_disconnect", { reason: "client_close" });
  });

  test("the API is asked: for a request, for a change, and told of a captcha", async () => {
    const at = `/browsers/${lease.session_id}`;
    await daemon.call(`POST ${at}/curl`, { url: `${daemon.url}/healthz` });
    await daemon.call(`PATCH ${at}`, { tags: { a: "b" } });
    expect(await daemon.call(`POST ${at}/telemetry/captcha_solve_results`, solved)).toMatchObject({
      status: 204,
    });
    await told("api_call", { operation_id: "curlBrowser", status: 400 });
    await told("platform_api_call", { operation_id: "updateBrowser", status: 200 });
    await told("captcha_solve_result", solved);
  });

  test("a page says more than is read", async () => {
    const { client, page } = await connect();
    await until(
      "it is told",
      async () => {
        // Many short ones take seconds on a crowded machine, and as many a second are read.
        await client.evaluate('for (let at = 0; at < 60; at += 1) console.log("x".repeat(200_000))', page);
        return (await read("monitor_events_dropped")).length > 0;
      },
      110_000,
    );
    await client.close();
  });

  test("Chromium is restarted within the session", async () => {
    await daemon.call("POST /profiles", { name: "attached" });
    const attached = { profile: { name: "attached" } };
    expect((await daemon.call(`PATCH /browsers/${lease.session_id}`, attached)).status).toBe(200);
    await told("monitor_disconnected", { reason: "chrome_restarted" });
    await told("monitor_reconnected", {});
  });

  // Only root's browsers have a control group that the kernel holds to its memory.
  test.runIf(process.getuid?.() === 0)("the kernel kills for want of memory", async () => {
    const { client, page } = await connect();
    const main = await mainOf();
    if (main === undefined) throw new Error("it has no Chromium");
    await leaveMemory(main, 192 * 2 ** 20);
    client.evaluate(greed, page).catch(() => {});
    await told("system_oom_kill", { constraint: "memcg" });
    await client.close();
  });

  test("Chromium crashes", async () => {
    // The kernel may have ended it before.
    const main = await mainOf();
    if (main !== undefined) signalLiving(main, "SIGKILL");
    await told("service_crashed", { phase: "running" });
  });

  test("every type of the corpus was caused", () => {
    const missing = typesOfDaemons.filter((type) => !caused.has(type));
    expect(missing).toEqual(process.getuid?.() === 0 ? [] : ["system_oom_kill"]);
    expect(lackedBy([...caused.values()].flat())).toEqual([]);
  });
});
