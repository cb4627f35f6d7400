import { afterEach, expect, test } from "vitest";
import { newBrowserId, newLeaseId, onDemandPartition } from "../../src/base/ids.js";
import { OomKills } from "../../src/node/system-events.js";
import { BrowserTelemetry } from "../../src/telemetry/browser-telemetry.js";
import type { EventBatch } from "../../src/telemetry/ports.js";
import { until } from "../support/browser/chromium-until.js";
import { openNodeBed, type NodeBed } from "../support/node/node-bed.js";
import { PoolBed } from "../support/store/pool-bed.js";
import { makeRecorder, telemetryInto } from "../support/telemetry/recorder.js";

let node: NodeBed | undefined;
afterEach(async () => {
  await node?.close();
  node = undefined;
});

/** Keeps what is stored. */
function storedEvents() {
  const texts: string[] = [];
  const append = async ({ events }: EventBatch) => {
    const last = texts.push(...events.map(({ text }) => text));
    return { last, lost: 0 };
  };
  const all = (): unknown[] => texts.map((text) => JSON.parse(text) as unknown);
  return { recorder: makeRecorder({ append }), all };
}

const system = { revision: 1, telemetry: JSON.stringify({ browser: { system: { enabled: true } } }) };

test("a browser that crashes is told to its holder, and to nobody without a lease", async () => {
  const { recorder, all } = storedEvents();
  node = await openNodeBed("systemevents", { makeTelemetry: telemetryInto(recorder) });
  const pool = await PoolBed.create(node.bed, { size: 2 });
  const [leased, idle] = await pool.claim(2);
  if (!leased || !idle) throw new Error("nothing was claimed");
  await node.launch(leased);
  await node.launch(idle);
  const slot = node.slots.find(leased.id);
  const lease = newLeaseId();
  slot?.activity.begin(lease);
  slot?.captures(lease, { telemetry: system.telemetry });
  for (const { pid } of node.launched) process.kill(pid, "SIGKILL");
  await until("both ends", () => node?.slots.all().length === 0);
  await until("the event", () => all().length > 0);
  expect(all()).toMatchObject([
    {
      type: "service_crashed",
      category: "system",
      source: { kind: "local_process" },
      data: { service_name: "chromium", phase: "running" },
    },
  ]);
});

test("what the kernel kills for want of memory is told while somebody wants to know, and once", async () => {
  const { recorder, all } = storedEvents();
  const telemetry = new BrowserTelemetry({
    browser: newBrowserId(onDemandPartition),
    launched: undefined,
    recorder,
  });
  let kills = 1;
  const slot = { telemetry, chromium: { oomKills: async () => kills } };
  const watch = new OomKills();
  await watch.look([slot]);
  const lease = newLeaseId();
  telemetry.told(lease, system);
  await watch.look([slot]);
  kills = 3;
  await watch.look([slot]);
  await watch.look([slot]);
  await telemetry.over(lease);
  await recorder.close();
  expect(all()).toMatchObject([
    { type: "system_oom_kill", data: { process_name: "chromium", constraint: "memcg", kills: 2 } },
  ]);
});
