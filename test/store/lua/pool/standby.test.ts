import { expect, test } from "vitest";
import {
  type BrowserId,
  newBrowserId,
  newLeaseId,
  newVaultId,
  onDemandPartition,
} from "../../../../src/base/ids.js";
import type { CreateRequest, Waiter } from "../../../../src/pool/ports/pool-store.js";
import { partitionKey } from "../../../../src/store/redis/keys.js";
import { onBoth } from "../../../support/store/on-both.js";
import { nodeFacts } from "../../../support/store/node-facts.js";
import { controlA, nodeA, nodeB, PoolBed } from "../../../support/store/pool-bed.js";
import {
  candidateOn,
  claimOf,
  launchFacts,
  poolSpec,
  request,
  writeOf,
} from "../../../support/store/store-bed.js";

const gib = 2 ** 30;
const { template } = writeOf(poolSpec());
const key = "shape-one";

onBoth(
  "browsers that stand by",
  ({ bed }) => {
    const claim = (count: number, node = nodeA) =>
      bed().standby.claim(onDemandPartition, {
        candidates: Array.from({ length: count }, () => candidateOn(onDemandPartition, node)),
        key,
        template,
        count,
        request: request(),
      });
    async function standBy(count: number, node = nodeA): Promise<readonly BrowserId[]> {
      const claimed = await claim(count, node);
      for (const browser of claimed) await bed().reports.launched(browser.id, claimOf(browser), "{}");
      return claimed.map(({ id }) => id);
    }
    const waiterOf = (over: Partial<Waiter> = {}): Waiter => {
      const id = request();
      return { id, lease: newLeaseId(), control: controlA, connection: id, timeoutSeconds: 77, ...over };
    };
    const facts = JSON.stringify({ ...launchFacts, captures: true });
    const create = (waiter: Waiter, over: Partial<CreateRequest> = {}) =>
      bed().poolStore.createSession(onDemandPartition, {
        waiter,
        template: { ...template, start_url: "https://example.com/" },
        standby: { key, facts },
        ...(waiter.key !== undefined && { idempotencyKey: { key: waiter.key, body: "body" } }),
        ...over,
      });
    async function granted(waiter = waiterOf(), over: Partial<CreateRequest> = {}) {
      const reply = await create(waiter, over);
      if (reply.kind !== "granted") throw new Error(reply.kind);
      return reply.browser;
    }
    const stateOf = async (id: BrowserId): Promise<string> =>
      (await bed().poolStore.findBrowser(id))?.browser.state ?? "gone";
    const roomOf = () => bed().nodes.occupancy(nodeA);
    const reserve = (over: Parameters<ReturnType<typeof bed>["nodes"]["reserveRoom"]>[1]) =>
      bed().nodes.reserveRoom(nodeFacts(nodeA, { memoryBytes: 2 * gib }), over);

    test("what is launched for a session is told apart from what is to stand by, in one look", async () => {
      const look = () => bed().standby.find(onDemandPartition);
      const [one] = await claim(1);
      expect(await look()).toMatchObject({ browsers: [{ state: "launching" }], sessionsLaunching: 0 });
      await create(waiterOf(), { candidate: candidateOn(onDemandPartition, nodeA) });
      if (!one) throw new Error("none was claimed");
      expect(await look()).toMatchObject({ browsers: [{ id: one.id }], sessionsLaunching: 1 });
      await bed().reports.launched(one.id, claimOf(one), "{}");
      expect(await look()).toMatchObject({ browsers: [{ state: "idle" }], sessionsLaunching: 1 });
    });

    test("one is lent at once, and its record says what it would had it been launched for its holder", async () => {
      const [id] = await standBy(1);
      const waiter = waiterOf({ name: "mine", tags: '{"a":"b"}' });
      const browser = await granted(waiter);
      expect(browser).toMatchObject({ id, state: "leased", facts, served: 0, generation: 1 });
      expect(browser.lease).toMatchObject({
        id: waiter.lease,
        timeoutSeconds: 77,
        name: "mine",
        registrations: 0,
      });
      expect(browser.standby).toBeUndefined();
      expect(browser.createdAt).toBe(browser.lease.grantedAt);
      const { start_url } =
        (await bed().poolStore.findTemplate(onDemandPartition, browser.templateKey)) ?? {};
      expect(start_url).toBe("https://example.com/");
      // What it was launched from is kept under no other key.
      const templates = partitionKey(bed().project, onDemandPartition, "templates");
      expect(await bed().redis.hlen(templates)).toBe(1);
    });

    test("of callers at once, none is lent what another has", async () => {
      await standBy(3);
      const replies = await Promise.all(Array.from({ length: 8 }, () => create(waiterOf())));
      const ids = replies.flatMap((reply) => (reply.kind === "granted" ? [reply.browser.id] : []));
      expect(new Set(ids).size).toBe(3);
      expect(replies.filter(({ kind }) => kind === "none")).toHaveLength(5);
    });

    test("one of another shape is not lent, nor one that is still launching", async () => {
      await standBy(1);
      await claim(2);
      const other = { key: "shape-two", facts };
      expect(await create(waiterOf(), { standby: other })).toEqual({ kind: "none" });
      await granted();
      expect(await create(waiterOf())).toEqual({ kind: "none" });
    });

    test("the same request and the same key are answered with the same lease", async () => {
      await standBy(2);
      const waiter = waiterOf({ key: "digest" });
      const first = await granted(waiter);
      expect((await granted(waiter)).lease.id).toBe(first.lease.id);
      const again = await granted(waiterOf({ key: "digest" }));
      expect([again.id, again.lease.id]).toEqual([first.id, first.lease.id]);
      expect((await bed().standby.find(onDemandPartition)).browsers).toHaveLength(1);
    });

    test("it is retired when its session ends, and was nobody else's", async () => {
      const [id = "" as BrowserId] = await standBy(1);
      const { lease } = await granted();
      const release = { browser: id, lease: lease.id, reuse: true, why: "deleted", isRetry: false } as const;
      await bed().poolStore.release(onDemandPartition, { ...release, request: request() });
      expect(await stateOf(id)).toBe("retiring");
      expect(await create(waiterOf())).toEqual({ kind: "none" });
      const { browser } = (await bed().poolStore.findBrowser(id)) ?? {};
      if (browser?.state !== "retiring") throw new Error("it is not retiring");
      await bed().reports.gone(id, browser.claim, undefined);
      expect(await bed().redis.hlen(partitionKey(bed().project, onDemandPartition, "templates"))).toBe(0);
      expect(await bed().projects.findTombstone(id)).toMatchObject({ id, reason: "deleted" });
    });

    test("what is kept of its session names the vaults that it had; tags go where they do not fit beside them", async () => {
      const vaultIds = Array.from({ length: 20 }, () => newVaultId());
      const named = { name: "n".repeat(255), tags: JSON.stringify({ note: "v".repeat(200) }) };
      for (const [vaults, tags] of [
        [vaultIds.slice(0, 1), named.tags],
        [vaultIds, undefined],
      ] as const) {
        const [id = "" as BrowserId] = await standBy(1);
        const launched = JSON.stringify({ ...launchFacts, vaultIds: vaults });
        const { lease } = await granted(waiterOf(named), { standby: { key, facts: launched } });
        const release = {
          browser: id,
          lease: lease.id,
          reuse: true,
          why: "deleted",
          isRetry: false,
        } as const;
        await bed().poolStore.release(onDemandPartition, { ...release, request: request() });
        const { vaultIds: kept, tags: left, name } = (await bed().projects.findTombstone(id)) ?? {};
        expect({ kept, left, name }).toEqual({ kept: vaults, left: tags, name: named.name });
      }
    });

    test("what stands by, is launching for that or has been retired is no session that counts", async () => {
      const [one = "" as BrowserId] = await standBy(3);
      await bed().standby.retire([one], "unwanted");
      await standBy(4);
      await claim(6);
      for (const _ of [1, 2, 3]) await granted();
      expect(await create(waiterOf())).toEqual({ kind: "full" });
    });

    test("a session that is over counts no more, also while its node still ends it and keeps its room", async () => {
      const [id = "" as BrowserId] = await standBy(1);
      await reserve({ id, bytes: gib });
      const { lease } = await granted();
      await standBy(4);
      for (const _ of [1, 2]) await granted();
      expect(await create(waiterOf())).toEqual({ kind: "full" });
      const release = { browser: id, lease: lease.id, reuse: true, why: "deleted", isRetry: false } as const;
      await bed().poolStore.release(onDemandPartition, { ...release, request: request() });
      await granted();
      expect(await create(waiterOf())).toEqual({ kind: "full" });
      expect([await stateOf(id), await roomOf()]).toMatchObject(["retiring", { browsers: 1 }]);
      const { browser } = (await bed().poolStore.findBrowser(id)) ?? {};
      if (browser?.state !== "retiring") throw new Error("it is not retiring");
      await bed().reports.gone(id, browser.claim, undefined);
      await bed().effects.idle();
      expect(await roomOf()).toMatchObject({ browsers: 0 });
    });

    test("no more are claimed than are wanted, and none while launches fail", async () => {
      expect(await claim(3)).toHaveLength(3);
      expect(await claim(3)).toEqual([]);
      const { browsers } = await bed().standby.find(onDemandPartition);
      for (const browser of browsers)
        await bed().reports.launchFailed(browser.id, claimOf(browser), "no display");
      expect(await bed().redis.hlen(partitionKey(bed().project, onDemandPartition, "templates"))).toBe(0);
      expect((await bed().standby.find(onDemandPartition)).resting).toEqual([nodeA]);
      expect(await claim(3)).toEqual([]);
      expect(await claim(3, nodeB)).toHaveLength(3);
    });

    test("one whose node does not answer is not lent until it does", async () => {
      await standBy(1, nodeA);
      await bed().poolStore.silenceNode(onDemandPartition, nodeA, 60_000);
      expect(await create(waiterOf())).toEqual({ kind: "none" });
      const [onB] = await standBy(2, nodeB);
      expect((await granted()).id).toBe(onB);
      await bed().poolStore.silenceNode(onDemandPartition, nodeA, 0);
      expect((await granted()).node).toBe(nodeA);
    });

    test("one whose node drains is retired, and a lost node's is forgotten", async () => {
      const [drained = "" as BrowserId] = await standBy(1);
      const clear = (which: "idle" | "lost", why: "drained" | "node_lost") =>
        bed().poolStore.clearNode(onDemandPartition, { node: nodeA, why, which, request: request() });
      await clear("idle", "drained");
      expect(await stateOf(drained)).toBe("retiring");
      const [lost = "" as BrowserId] = await standBy(1);
      await clear("lost", "node_lost");
      expect([await stateOf(drained), await stateOf(lost)]).toEqual(["gone", "gone"]);
      expect(await create(waiterOf())).toEqual({ kind: "none" });
    });

    test("room is another's before it is that of what stands by, which goes", async () => {
      const [one = "" as BrowserId, two = "" as BrowserId] = await standBy(2);
      for (const id of [one, two]) expect(await reserve({ id, bytes: gib, standsBy: true })).toBe(true);
      const third = newBrowserId(onDemandPartition);
      expect(await reserve({ id: third, bytes: gib, standsBy: true })).toBe(false);
      expect(await roomOf()).toEqual({ browsers: 0, bytes: 0, standby: { browsers: 2, bytes: 2 * gib } });
      const pool = await PoolBed.create(bed());
      expect(await reserve({ id: newBrowserId(pool.partition), bytes: gib })).toBe(true);
      const states = [await stateOf(one), await stateOf(two)];
      expect(states.toSorted()).toEqual(["idle", "retiring"]);
      expect(await roomOf()).toEqual({ browsers: 1, bytes: gib, standby: { browsers: 1, bytes: gib } });
      expect(await reserve({ id: newBrowserId(pool.partition), bytes: gib })).toBe(true);
      expect(await reserve({ id: newBrowserId(pool.partition), bytes: gib })).toBe(false);
      expect(await roomOf()).toEqual({ browsers: 2, bytes: 2 * gib });
    });

    test("one that was lent meanwhile keeps its room, also where its control has died before it said so", async () => {
      const [id = "" as BrowserId] = await standBy(1);
      await reserve({ id, bytes: gib, standsBy: true });
      await granted();
      const pool = await PoolBed.create(bed());
      const large = { id: newBrowserId(pool.partition), bytes: 2 * gib };
      expect(await reserve(large)).toBe(false);
      expect(await stateOf(id)).toBe("leased");
      expect(await roomOf()).toEqual({ browsers: 1, bytes: gib });
      expect(await reserve({ ...large, bytes: gib })).toBe(true);
    });
  },
  // A node rests for longer than a busy machine takes between two steps.
  { maxSessions: 3, backoffInitialMs: 20_000, backoffMaxMs: 1_200_000 },
);
