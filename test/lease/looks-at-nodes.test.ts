import { afterAll, beforeAll, expect, test } from "vitest";
import type { NodeId } from "../../src/base/ids.js";
import { until } from "../support/browser/chromium-until.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { costOf, type Cost } from "../support/store/redis-cost.js";
import { nodeFacts } from "../support/store/node-facts.js";

let control: ControlBed;
beforeAll(async () => {
  control = await openControlBed("looks");
});
afterAll(() => control.close());

const cost = (work: () => Promise<unknown>): Promise<Cost> => costOf(control.bed.redis, work);

/** Callers who wait for a session each, until all of them leave. */
function patientCallers() {
  const asked: { readonly gone: AbortController; readonly answer: Promise<unknown> }[] = [];
  return {
    ask(): void {
      const gone = new AbortController();
      asked.push({ gone, answer: control.createSession({}, callerOf({ gone: gone.signal })) });
    },
    async leave(): Promise<void> {
      for (const { gone } of asked) gone.abort();
      await Promise.all(asked.map(({ answer }) => answer));
    },
  };
}

test("browsers that are asked for at the same time look at the nodes together", async () => {
  const { bed } = control;
  const nodes = Array.from({ length: 20 }, (_, at) => nodeFacts(`n${at}` as NodeId));
  for (const node of nodes) await bed.nodes.beat(node);
  bed.jobs.length = 0;
  const { ask, leave } = patientCallers();
  const look = await cost(async () => {
    for (let at = 0; at < 20; at += 1) ask();
    await until("their launches", () => bed.jobs.length === 20);
  });
  // Those that come while the first looks share the next look, and each reads the room that it is given.
  const wholeLook = nodes.length + 2;
  expect(look.wholeReads).toBeLessThanOrEqual(2 * wholeLook + nodes.length);
  await leave();
  for (const { id } of nodes) await bed.nodes.forget(id);
});

test("browsers that are asked for one after the other do not look at all nodes each time, and are placed as if they did", async () => {
  const { bed, clock } = control;
  clock.stand(10_000);
  const nodes = Array.from({ length: 20 }, (_, at) => nodeFacts(`n${at}` as NodeId));
  for (const node of nodes) await bed.nodes.beat(node);
  bed.jobs.length = 0;
  const { ask, leave } = patientCallers();
  const placeOne = async (): Promise<NodeId | undefined> => {
    const before = bed.jobs.length;
    ask();
    await until("its launch", () => bed.jobs.length > before);
    return bed.jobs.at(-1)?.node;
  };
  const first = await placeOne();
  const others = new Set<unknown>();
  const later = await cost(async () => {
    for (let at = 1; at < 19; at += 1) others.add(await placeOne());
  });
  // Each reads the room that it is given.
  expect(later.wholeReads).toBeLessThan(nodes.length);
  expect(others.add(first).size).toBe(19);
  // The twentieth would have the last of them, which has begun to drain.
  const last = nodes.find(({ id }) => !others.has(id));
  if (!last) throw new Error("each has one");
  await bed.nodes.beat({ ...last, isDraining: true });
  expect(await placeOne()).not.toBe(last.id);
  await leave();
  for (const { id } of nodes) await bed.nodes.forget(id);
});
