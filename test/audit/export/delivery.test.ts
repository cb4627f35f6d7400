import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { makeSeal } from "../../../src/audit/seal.js";
import { openConfig } from "../../../src/config/config.js";
import { valueOf } from "../../support/audit/export-bed.js";
import { deliveryOf, exportWorlds, hourMs, paths } from "../../support/audit/export-world.js";
import { repository } from "../../support/documentation.js";
import { DrivenClock } from "../../support/driven-clock.js";

const inWorld = exportWorlds();
const inCluster = exportWorlds({ cluster: true });

test("each entry is in one object, which names its window, its entries and the hour they were received in", () =>
  inWorld(async ({ log, cloud, exports }) => {
    await log.oldEntries(paths(5, "early"), 2 * hourMs);
    await log.oldEntries(paths(4, "late"), hourMs);
    const { id } = await exports.trusting();
    await exports.activate(id, 3 * hourMs);
    const { deliver, counted } = deliveryOf({ exports, log });
    await deliver(id);

    const objects = await cloud.objects();
    expect([...objects.keys()]).toHaveLength(2);
    expect(cloud.lines().map(({ path }) => path)).toEqual([...paths(5, "early"), ...paths(4, "late")]);
    for (const [key, bytes] of objects) {
      const form =
        /^remuda\/destination_id=(\w{24})\/org_id=default\/date=(\S{10})\/hour=(\d\d)\/(\d{8}T\d{4}00Z)-(\S{20})_(\S{20})\.jsonl\.gz$/;
      const [, destination, date, hour, window, first, last] = form.exec(key) ?? [];
      expect(destination, key).toBe(id);
      const rows = gunzipSync(bytes)
        .toString()
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
      expect([rows.at(0).event_id, rows.at(-1).event_id]).toEqual([first, last]);
      for (const { timestamp } of rows) expect(timestamp.slice(0, 13)).toBe(`${date}T${hour}`);
      expect(Number(window?.slice(11, 13)) % 5).toBe(0);
      expect(window?.slice(9, 11)).toBe(hour);
    }
    const got = valueOf(await exports.operations.get(id));
    expect(got).toMatchObject({ failures: 0, lastSuccessAt: expect.any(Number) });
    expect(counted).toEqual({ entries: 9, failed: [], gaps: 0 });

    // Nothing is put again, and there is nothing more to do.
    await deliver(id);
    expect(cloud.puts).toHaveLength(2);
  }));

test("a session is asked for one destination's objects only, and encrypts them with its key", () =>
  inWorld(async ({ log, cloud, exports }) => {
    await log.oldEntries(paths(1), hourMs);
    const key = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab";
    const { id, externalId } = await exports.trusting({ prefix: "", kms_key_id: key });
    await exports.activate(id, 2 * hourMs);
    await deliveryOf({ exports, log }).deliver(id);
    const [asked, ...more] = cloud.asked.map((form) => Object.fromEntries(form));
    expect(more).toEqual([]);
    expect(asked).toMatchObject({ ExternalId: externalId, RoleSessionName: `remuda-${id}` });
    expect(JSON.parse(asked?.["Policy"] ?? "").Statement).toEqual([
      { Effect: "Allow", Action: ["s3:PutObject"], Resource: `arn:aws:s3:::archives/destination_id=${id}/*` },
      {
        Effect: "Allow",
        Action: "kms:GenerateDataKey",
        Resource: key,
        Condition: { StringEquals: { "kms:ViaService": "s3.us-east-1.amazonaws.com" } },
      },
    ]);
    expect(cloud.puts[0]?.headers).toMatchObject({
      "content-type": "application/gzip",
      "x-amz-server-side-encryption-aws-kms-key-id": key,
    });
    expect(cloud.puts[0]?.key).toMatch(new RegExp(`^destination_id=${id}/`));
  }));

test("a window is held back until its time has come, and the cursor waits with it", () =>
  inWorld(async ({ log, cloud, exports }) => {
    await log.oldEntries(["/old"], hourMs);
    await log.appendPaths(["/new"]);
    const { id } = await exports.trusting();
    await exports.activate(id, 2 * hourMs);
    await deliveryOf({ exports, log }).deliver(id);
    expect(cloud.lines().map(({ path }) => path)).toEqual(["/old"]);
    // All that is there is delivered when it is old enough.
    const soon = { windows: { windowMs: 1000, holdMs: -5000 } };
    await deliveryOf({ exports, log }, soon).deliver(id);
    expect(cloud.lines().map(({ path }) => path)).toEqual(["/old", "/new"]);
  }));

/** As a daemon cuts and holds the log unless it is told otherwise. */
function usualWindows(): { readonly windowMs: number; readonly holdMs: number } {
  const opened = openConfig({ packageRoot: repository, env: {} });
  if (opened.kind === "refused") throw new Error(opened.faults.join());
  return opened.config.audit.export;
}

test("unless settings say otherwise a window is delivered ten minutes after its end, and not a millisecond before", () =>
  inWorld(async ({ log, cloud, exports }) => {
    const { windowMs, holdMs } = usualWindows();
    const end = Math.floor((Date.now() - 2 * hourMs) / windowMs) * windowMs;
    await log.oldEntry({ path: "/last", recordedAt: end - 1, at: end - 1 });
    await log.oldEntry({ path: "/next", recordedAt: end, at: end });
    const { id } = await exports.trusting();
    await exports.activate(id, 4 * hourMs);
    const clock = new DrivenClock();
    const driven = { clock, windows: { windowMs, holdMs }, destinations: { now: async () => clock.now() } };
    const { deliver } = deliveryOf({ exports, log }, driven);
    const deliveredAfter = async (passedMs: number): Promise<readonly string[]> => {
      await clock.advance(passedMs);
      await deliver(id);
      return cloud.lines().map(({ path }) => path);
    };
    const tenMinutesMs = 600_000;
    expect(await deliveredAfter(end + tenMinutesMs - 1)).toEqual([]);
    expect(await deliveredAfter(1)).toEqual(["/last"]);
    // What came in at the very end is of the next window, which is held as long.
    expect(await deliveredAfter(windowMs - 1)).toEqual(["/last"]);
    expect(await deliveredAfter(1)).toEqual(["/last", "/next"]);
  }));

test("what is recorded before an activation, or during a pause, is delivered by none that comes after", () =>
  inWorld(async ({ log, cloud, exports }) => {
    // A window that is over closes its time for later entries: the next delivery looks further ahead.
    const soon = (aheadMs: number) => ({ windows: { windowMs: 1000, holdMs: -aheadMs } });
    const { id } = await exports.trusting();
    const turn = async (status: "active" | "paused"): Promise<void> =>
      void valueOf(await exports.operations.update(id, { status }));
    await log.appendPaths(["/before"]);
    await turn("active");
    await log.appendPaths(["/active"]);
    await deliveryOf({ exports, log }, soon(5000)).deliver(id);
    expect(cloud.lines().map(({ path }) => path)).toEqual(["/active"]);
    await turn("paused");
    await log.appendPaths(["/paused"]);
    await deliveryOf({ exports, log }, soon(5000)).deliver(id);
    await turn("active");
    await log.appendPaths(["/resumed"]);
    await deliveryOf({ exports, log }, soon(60_000)).deliver(id);
    expect(cloud.lines().map(({ path }) => path)).toEqual(["/active", "/resumed"]);
  }));

test("what was received in one hour and recorded in the next stands in an object of its own hour", () =>
  inWorld(async ({ log, cloud, exports }) => {
    const [one, other] = [2 * hourMs, 3 * hourMs];
    const begin = Math.floor(Date.now() / hourMs) * hourMs;
    // Recorded together at the beginning of an hour; the first of them was received before it.
    await log.oldEntry({ path: "/before", recordedAt: begin - one + 5, at: begin - one - 2000 });
    await log.oldEntry({ path: "/within", recordedAt: begin - one + 6, at: begin - one + 1 });
    const { id } = await exports.trusting();
    await exports.activate(id, other + hourMs);
    await deliveryOf({ exports, log }).deliver(id);
    const keys = [...(await cloud.objects()).keys()];
    const hourOf = (at: number): string => new Date(at).toISOString().slice(11, 13);
    expect(keys.map((key) => /hour=(\d\d)/.exec(key)?.[1])).toEqual([
      hourOf(begin - other),
      hourOf(begin - one),
    ]);
    const windows = keys.map((key) => /\/(\d{8}T\d{6}Z)-/.exec(key)?.[1]);
    expect(new Set(windows).size).toBe(1);
  }));

test("chunks are small, follow one another and have other names; sealed or not is all the same", () =>
  inWorld(
    async ({ log, cloud, exports }) => {
      await log.oldEntries(paths(25), hourMs);
      await makeSeal(log.sealing)();
      await log.appendPaths(paths(10, "new"));
      const { id } = await exports.trusting();
      await exports.activate(id, 2 * hourMs);
      const bounds = { entries: 10, bytes: 1200 };
      const windows = { windowMs: 1000, holdMs: -5000 };
      await deliveryOf({ exports, log }, { bounds, windows }).deliver(id);
      expect(cloud.lines().map(({ path }) => path)).toEqual([...paths(25), ...paths(10, "new")]);
      const sizes = [...(await cloud.objects()).values()].map((bytes) => gunzipSync(bytes).length);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(1200);
      expect(sizes.length).toBeGreaterThan(8);
    },
    { logOf: { segmentEntries: 12, hotMs: 0 } },
  ));

test("a store of one's own is written to with its own credentials, and nobody's role is assumed", () =>
  inWorld(
    async ({ log, cloud, exports }) => {
      await log.oldEntries(paths(3), hourMs);
      const { id } = await exports.make({ region: "garage" });
      expect(valueOf(await exports.operations.test(id))).toEqual({ stage: "complete" });
      await exports.activate(id, 2 * hourMs);
      await deliveryOf({ exports, log }).deliver(id);
      expect(cloud.lines().map(({ path }) => path)).toEqual(paths(3));
      expect(cloud.asked).toEqual([]);
    },
    { cloudOf: { needsSession: false }, exportsOf: { assumesRoles: false, serviceRoleArn: null } },
  ));

test("a log that is kept in a Redis Cluster is delivered, sealed entries and others, and its cursor moves on", () =>
  inCluster(async ({ log, cloud, exports }) => {
    await log.oldEntries(paths(5, "early"), 3 * hourMs);
    await log.seal();
    await log.oldEntries(paths(4, "late"), hourMs);
    const { id } = await exports.trusting();
    const { cursor } = await exports.activate(id, 4 * hourMs);
    const { deliver, counted } = deliveryOf({ exports, log });
    await deliver(id);
    expect(cloud.lines().map(({ path }) => path)).toEqual([...paths(5, "early"), ...paths(4, "late")]);
    expect(counted).toEqual({ entries: 9, failed: [], gaps: 0 });
    expect(valueOf(await exports.operations.get(id)).cursor).not.toBe(cursor);
  }));
