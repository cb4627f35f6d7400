import { expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { SilentNodes } from "../../src/pool/silent-nodes.js";
import { DrivenClock } from "../support/driven-clock.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { nodeFacts } from "../support/store/node-facts.js";
import { onBoth } from "../support/store/on-both.js";
import { nodeA, PoolBed } from "../support/store/pool-bed.js";

const address = { host: "a.example", port: 9000 };

onBoth("silent nodes", ({ bed }) => {
  type Ports = ConstructorParameters<typeof SilentNodes>[0];
  const silentNodesOf = (pool: PoolBed, over: Pick<Ports, "answers"> & Partial<Ports>): SilentNodes =>
    new SilentNodes({
      ...bed(),
      projects: { partitions: () => Promise.resolve([pool.partition]) },
      clock: systemClock,
      log: silentLog,
      keptMs: 60_000,
      lookEveryMs: 60_000,
      ...over,
    });

  test("however many clients could not be sent on to a node, it is asked once, and once more for those who came meanwhile", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await bed().nodes.beat(nodeFacts(nodeA, address));
    const asked: ((isThere: boolean) => void)[] = [];
    let hasAsked = (): void => {};
    const silentNodes = silentNodesOf(pool, {
      answers: () =>
        new Promise((resolve) => {
          asked.push(resolve);
          hasAsked();
        }),
    });
    const nextAsk = (): Promise<void> => new Promise((resolve) => (hasAsked = resolve));
    const first = nextAsk();
    silentNodes.suspect(address);
    const firstLook = silentNodes.look();
    await first;
    for (let client = 0; client < 50; client += 1) silentNodes.suspect(address);
    const second = nextAsk();
    const last = silentNodes.look();
    asked[0]?.(false);
    await firstLook;
    expect((await pool.ask()).reply.kind).toBe("waiting");
    await second;
    asked[1]?.(true);
    await last;
    expect(asked).toHaveLength(2);
    expect(await pool.counts()).toMatchObject({ leased: 1, waiting: 0 });
  });

  test("a node of which a lease ends that nobody has used is asked, and its browser is not lent again where it does not answer", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await bed().nodes.beat(nodeFacts(nodeA, address));
    const clock = new DrivenClock();
    const asked: string[] = [];
    let answer = true;
    const silentNodes = silentNodesOf(pool, {
      clock,
      answers: ({ id }) => {
        asked.push(id);
        return Promise.resolve(answer);
      },
    });
    const releasedUnused = async (): Promise<void> => {
      const from = bed().ended.length;
      await pool.release(await pool.lend());
      for (const { node, hadClient } of bed().ended.slice(from))
        if (!hadClient) silentNodes.suspectUnused(node);
      await silentNodes.look();
    };
    await releasedUnused();
    expect(asked).toEqual([nodeA]);
    // It has answered just now.
    await releasedUnused();
    expect(asked).toEqual([nodeA]);
    await clock.advance(1000);
    answer = false;
    await releasedUnused();
    expect(asked).toEqual([nodeA, nodeA]);
    expect((await pool.ask()).reply.kind).toBe("waiting");
  });

  test("a node is asked once, however many leases on it end unused while it is asked", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await bed().nodes.beat(nodeFacts(nodeA, address));
    const asked: string[] = [];
    const silentNodes = silentNodesOf(pool, {
      answers: ({ id }) => {
        asked.push(id);
        silentNodes.suspectUnused(nodeA);
        return Promise.resolve(true);
      },
    });
    silentNodes.suspectUnused(nodeA);
    silentNodes.suspectUnused(nodeA);
    await silentNodes.look();
    await silentNodes.look();
    expect(asked).toEqual([nodeA]);
  });

  test("a node that could not be asked stays what it was, and where it is stays known without Redis", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await bed().nodes.beat(nodeFacts(nodeA, address));
    let answer: boolean | undefined;
    let isAway = false;
    const silentNodes = silentNodesOf(pool, {
      nodes: { living: () => (isAway ? Promise.reject(new Error("no Redis")) : bed().nodes.living()) },
      answers: () => Promise.resolve(answer),
    });
    const looked = async (heard: boolean | undefined) => {
      answer = heard;
      silentNodes.suspect(address);
      await silentNodes.look();
    };
    await looked(undefined);
    expect((await pool.ask()).reply.kind).toBe("granted");
    await pool.clear();
    await looked(false);
    await looked(undefined);
    isAway = true;
    await silentNodes.look();
    expect(silentNodes.lastKnown(nodeA)).toMatchObject(address);
  });
});
