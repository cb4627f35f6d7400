import { expect, test } from "vitest";
import { retryDelayMs } from "../../../src/audit/export/delivery.js";
import { makeSeal } from "../../../src/audit/seal.js";
import { valueOf } from "../../support/audit/export-bed.js";
import { deliveryOf, exportWorlds, hourMs, paths } from "../../support/audit/export-world.js";

const inWorld = exportWorlds();

test("an object whose put was not heard of is put again, the same bytes under the same name", () =>
  inWorld(async ({ log, cloud, exports }) => {
    await log.oldEntries(paths(20), hourMs);
    const { id } = await exports.trusting();
    const { cursor } = await exports.activate(id, 2 * hourMs);
    // The one that moves the cursor is killed before it: the next delivers from where the last has begun.
    const killed = { destinations: { move: async () => "stale" as const } };
    await deliveryOf({ exports, log }, { ...killed, bounds: { entries: 7, bytes: 10_000 } }).deliver(id);
    expect(cloud.puts).toHaveLength(1);
    expect(valueOf(await exports.operations.get(id)).cursor).toBe(cursor);
    await deliveryOf({ exports, log }, { bounds: { entries: 7, bytes: 10_000 } }).deliver(id);
    expect(cloud.puts.map(({ key }) => key)).toHaveLength(4);
    expect(cloud.puts[1]?.key).toBe(cloud.puts[0]?.key);
    expect(cloud.puts[1]?.bytes).toEqual(cloud.puts[0]?.bytes);
    expect(cloud.lines().map(({ path }) => path)).toEqual(paths(20));
  }));

test("a late writer with other bounds puts no object of fewer entries in the place of another", () =>
  inWorld(async ({ log, cloud, exports }) => {
    await log.oldEntries(paths(20), hourMs);
    const { id } = await exports.trusting();
    const before = await exports.activate(id, 2 * hourMs);
    await deliveryOf({ exports, log }).deliver(id);
    // It has read the record before, and stood still meanwhile.
    const late = { destinations: { find: async () => before } };
    await deliveryOf({ exports, log }, { ...late, bounds: { entries: 3, bytes: 10_000 } }).deliver(id);
    const lines = cloud.lines();
    expect(new Set(lines.map(({ path }) => path))).toEqual(new Set(paths(20)));
    expect(new Set(cloud.puts.map(({ key }) => key)).size).toBe(cloud.puts.length);
  }));

test("a destination that is paused, deleted or changed gets nothing more, and its cursor is moved by nobody", () =>
  inWorld(async ({ log, cloud, exports }) => {
    await log.oldEntries(paths(20), hourMs);
    const { id } = await exports.trusting();
    await exports.activate(id, 2 * hourMs);
    cloud.aroundPuts(async (_put, put) => {
      await exports.operations.update(id, { status: "paused" });
      await put();
    });
    const bounds = { entries: 5, bytes: 10_000 };
    const { deliver, counted } = deliveryOf({ exports, log }, { bounds });
    await deliver(id);
    // The upload that was under way has ended.
    expect(cloud.puts).toHaveLength(1);
    expect(valueOf(await exports.operations.get(id)).cursor).toBeUndefined();
    // What was recorded before the resume is not delivered any more.
    cloud.aroundPuts((_put, put) => put());
    valueOf(await exports.operations.update(id, { status: "active" }));
    await deliver(id);
    expect(cloud.puts).toHaveLength(1);
    expect(counted.failed).toEqual([]);
  }));

test("failures are counted, told in fixed words and tried again later; a success forgets them", () =>
  inWorld(async ({ log, cloud, exports }) => {
    await log.oldEntries(paths(3), hourMs);
    const { id } = await exports.make();
    await exports.activate(id, 2 * hourMs);
    const { deliver, counted } = deliveryOf({ exports, log });
    await deliver(id);
    const failed = valueOf(await exports.operations.get(id));
    expect(failed).toMatchObject({
      status: "active",
      failures: 1,
      lastError: expect.stringMatching(/^The role could not be assumed/),
    });
    expect(JSON.stringify(failed)).not.toContain("SERVICE");
    expect(Number(failed.nextAttemptAt) - Number(failed.lastErrorAt)).toBe(60_000);
    // It is not its time yet.
    await deliver(id);
    expect(counted.failed).toEqual(["assume_role"]);

    // A change makes it due at once. The external id stays with the destination.
    cloud.roles.set(failed.roleArn, { externalId: failed.externalId });
    cloud.break(403);
    valueOf(await exports.operations.update(id, { prefix: "other" }));
    await deliver(id);
    expect(valueOf(await exports.operations.get(id))).toMatchObject({
      failures: 2,
      lastError: expect.stringMatching(/^The bucket refused the object/),
    });
    cloud.break(undefined);
    valueOf(await exports.operations.update(id, { prefix: "another" }));
    await deliver(id);
    const mended = valueOf(await exports.operations.get(id));
    expect(mended.failures).toBe(0);
    expect(mended.nextAttemptAt).toBeUndefined();
    expect(counted.failed).toEqual(["assume_role", "put_object"]);
    expect(cloud.lines().map(({ path }) => path)).toEqual(paths(3));
  }));

test("the wait before another try doubles from a minute to an hour, and is never less than half of it", () => {
  const waits = [0, 1, 2, 5, 6, 60].map((failures) => retryDelayMs(failures, 1) / 60_000);
  expect(waits).toEqual([1, 2, 4, 32, 60, 60]);
  expect(retryDelayMs(0, 0)).toBe(30_000);
});

test("what retention has taken before it was delivered is told as lost, and the rest is delivered", () =>
  inWorld(
    async ({ log, cloud, exports }) => {
      await log.oldEntries(paths(5, "gone"), 5 * hourMs);
      await log.oldEntries(paths(5), hourMs);
      const { id } = await exports.trusting();
      await exports.activate(id, 6 * hourMs);
      await makeSeal(log.sealing)();
      const { deliver, counted } = deliveryOf({ exports, log });
      await deliver(id);
      expect(cloud.lines().map(({ path }) => path)).toEqual(paths(5));
      expect(counted).toEqual({ entries: 5, failed: [], gaps: 1 });
      expect(valueOf(await exports.operations.get(id))).toMatchObject({
        failures: 0,
        lastError: expect.stringMatching(/they are lost to this destination$/),
      });
    },
    { logOf: { keepMs: 3 * hourMs, hotMs: 0 } },
  ));

test("what retention takes while a delivery is under way is told as lost, and the rest is delivered", () =>
  inWorld(
    async ({ log, cloud, exports }) => {
      await log.oldEntries(paths(5, "first"), 5 * hourMs);
      await log.oldEntries(paths(5, "gone"), 4 * hourMs);
      await log.oldEntries(paths(5, "last"), 3 * hourMs);
      const { id } = await exports.trusting();
      await exports.activate(id, 6 * hourMs);
      await log.seal();
      const [, second] = await log.audit.segments(1, 3);
      if (!second) throw new Error("there are three segments");
      cloud.aroundPuts(async (_put, put) => {
        if (cloud.puts.length === 0) await log.audit.drop(second);
        await put();
      });
      const { deliver, counted } = deliveryOf({ exports, log }, { bounds: { entries: 5, bytes: 10_000 } });
      await deliver(id);
      expect(cloud.lines().map(({ path }) => path)).toEqual([...paths(5, "first"), ...paths(5, "last")]);
      expect(counted).toEqual({ entries: 10, failed: [], gaps: 1 });
      expect(valueOf(await exports.operations.get(id))).toMatchObject({
        failures: 0,
        lastError: expect.stringMatching(/they are lost to this destination$/),
      });
    },
    { logOf: { hotMs: 0 } },
  ));
