import { setTimeout as rest } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { type FakeChromium, makeFakeChromium, standIn } from "../support/browser/chromium-fake.js";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import type { DaemonProcess } from "../support/daemon/daemon-process.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { keysAbout } from "../support/store/redis-look.js";
import { useFaultBed } from "../support/faults/bed.js";
import { Load } from "../support/faults/load.js";
import { halvesOf, hasGrown, lineOf, quantile, Samples } from "./samples.js";

const minutes = Number(process.env["SOAK_MINUTES"]);
const bed = useFaultBed();
let fake: FakeChromium | undefined;
afterEach(() => fake?.remove());

/** However busy the machine is, no node is taken for lost: it is looked for what grows. */
const patient = { lost_after_ms: 60_000 };

async function start(): Promise<Readonly<Record<string, DaemonProcess>>> {
  fake = await makeFakeChromium();
  const labels = (kind: string) => ({ ...patient, labels: [`kind=${kind}`] });
  const direct = { redisUrl: bed.redis.url };
  const browser = Object.fromEntries(Object.entries(standIn(fake).browser));
  return {
    "control 1": await bed.start("control", { node: patient }, direct),
    "control 2": await bed.start("control", { node: patient }, direct),
    "node of Chromium": await bed.start("node", { node: { id: "a", ...labels("real") } }, direct),
    "node b": await bed.start("node", { browser, node: { id: "b", ...labels("fake") } }, direct),
    "node c": await bed.start("node", { browser, node: { id: "c", ...labels("fake") } }, direct),
  };
}

/** Does it again and again until the time is over. */
async function again(isOver: () => boolean, work: (times: number) => Promise<unknown>): Promise<void> {
  for (let times = 0; !isOver(); times += 1) await work(times);
}

/** A holder of a real browser, who drives a page by a control. */
async function drive(control: DaemonProcess, times: number): Promise<void> {
  const got = await control.call("POST /browser_pools/real/acquire", { acquire_timeout_seconds: 60 });
  expect(got.status).toBe(200);
  const { session_id, cdp_ws_url } = got.body as Lease;
  const client = await connectRaw(cdp_ws_url);
  expect(await client.evaluate("6 * 7", await client.attach())).toBe(42);
  const page = cdp_ws_url.replace(/^ws/, "http").replace("/cdp?", "/cdp/json/list?");
  expect((await fetch(page)).status).toBe(200);
  const released = await control.call("POST /browser_pools/real/release", {
    session_id,
    reuse: times % 5 > 0,
  });
  expect(released.status).toBe(204);
  await client.closed;
}

/** What an operator does to a pool and its nodes. */
async function operate(control: DaemonProcess, times: number): Promise<void> {
  const node = times % 2 === 0 ? "b" : "c";
  expect((await control.call("PATCH /browser_pools/fast", { size: 4 + (times % 4) })).status).toBe(200);
  expect((await control.call(`POST /nodes/${node}/drain`, { limit_seconds: 60 })).status).toBe(200);
  await rest(2000);
  expect((await control.call(`DELETE /nodes/${node}/drain`)).status).toBe(204);
  const viewport = { width: 1000 + (times % 50), height: 700 };
  expect((await control.call("PATCH /browser_pools/fast", { viewport })).status).toBe(200);
  await rest(2000);
}

/** Not from a pool: a launch and an end each. */
async function createOne(control: DaemonProcess, ids: string[]): Promise<void> {
  const made = await control.call("POST /browsers", { headless: true });
  if (made.status === 200) {
    const { session_id: id } = made.body as Lease;
    ids.push(id);
    expect((await control.call(`DELETE /browsers/${id}`)).status).toBe(204);
  } else expect(made.status).toBe(529);
  await rest(500);
}

test(
  `${minutes} minutes of churn leave memory and latency as they were, and nothing behind`,
  { timeout: (minutes + 5) * 60_000 },
  async () => {
    const daemons = await start();
    const controls = [daemons["control 1"], daemons["control 2"]] as [DaemonProcess, DaemonProcess];
    const [control] = controls;
    await control.makePool({ name: "real", size: 2, node_selector: { kind: "real" } });
    await control.makePool({ name: "fast", size: 6, node_selector: { kind: "fake" } });
    await control.makePool({
      name: "probe",
      size: 1,
      reset_on_release: "none",
      node_selector: { kind: "real" },
    });
    const samples = Object.entries(daemons).map(([name, daemon]) => new Samples(name, daemon));
    const endsAt = performance.now() + minutes * 60_000;
    const isOver = (): boolean => performance.now() > endsAt;
    const [tookMs, ids]: [number[], string[]] = [[], []];
    let missed = 0;
    const load = new Load({
      pool: "fast",
      controls: () => controls,
      callers: 4,
      holdMs: 300,
      connects: true,
    });
    await Promise.all([
      again(isOver, (times) => drive(controls[times % 2 === 0 ? 0 : 1], times)),
      again(isOver, (times) => operate(control, times)),
      again(isOver, () => createOne(control, ids)),
      again(isOver, async () => {
        const asked = performance.now();
        const { status, body } = await control.call("POST /browser_pools/probe/acquire", {});
        expect([200, 204]).toContain(status);
        // Its browser was replaced, and another was not there in time: that says nothing of latency.
        if (status === 204) return void (missed += 1);
        tookMs.push(performance.now() - asked);
        const { session_id } = body as Lease;
        expect((await control.call("POST /browser_pools/probe/release", { session_id })).status).toBe(204);
        await rest(200);
      }),
      again(isOver, async () => {
        for (const each of samples) await each.take();
        await rest(Math.min(10_000, minutes * 1000));
      }),
    ]);
    const { granted, refusals } = await load.stop();
    const latency = halvesOf(tookMs, (half) => quantile(half, 0.5));
    const compared = [
      ...samples.flatMap((each) => each.compare()),
      { what: "acquire, p50 in ms", ...latency, most: latency.before * 1.5 + 1 },
    ];
    console.log(
      [
        `${granted} leases of fake browsers, ${ids.length} sessions on demand, ${tookMs.length} timed acquires, ${missed} that found none in time, refused: ${JSON.stringify([...refusals])}`,
        ...compared.map(lineOf),
      ].join("\n"),
    );
    expect(compared.filter(hasGrown).map(lineOf)).toEqual([]);
    for (const pool of ["real", "fast", "probe"])
      expect((await control.call(`DELETE /browser_pools/${pool}`)).status).toBe(204);
    // Processes, directories and cgroups are looked for when the bed stops the daemons.
    await until(
      "no key of any session",
      async () => (await keysAbout(bed.redis.url, ids.slice(-50))).length === 0,
    );
  },
);
