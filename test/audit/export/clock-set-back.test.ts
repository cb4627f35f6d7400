import { expect, test } from "vitest";
import { isDue } from "../../../src/audit/export/windows.js";
import { positionAt } from "../../../src/audit/entry.js";
import { destination } from "../../support/http/recorded-audit.js";
import { valueOf } from "../../support/audit/export-bed.js";
import { deliveryOf, exportWorlds, hourMs } from "../../support/audit/export-world.js";

const inWorld = exportWorlds();
/** As if the clock were an hour ahead. */
const ahead = { windows: { windowMs: 1000, holdMs: -hourMs } };
/** Late enough for all that is there. */
const later = { windows: { windowMs: 1000, holdMs: -3 * hourMs } };

test("what is recorded after the clock was set back is delivered, though nothing was when it was ahead", () =>
  inWorld(async ({ log, cloud, exports }) => {
    await log.oldEntries(["/before"], hourMs);
    const { id } = await exports.trusting();
    await exports.activate(id, 2 * hourMs);
    await deliveryOf({ exports, log }, ahead).deliver(id);
    await log.appendPaths(["/back"]);
    await deliveryOf({ exports, log }, later).deliver(id);
    expect(cloud.lines().map(({ path }) => path)).toEqual(["/before", "/back"]);
  }));

test("an activation after the clock was set back begins with what is recorded from then on", () =>
  inWorld(async ({ log, cloud, exports }) => {
    const at = Date.now() + hourMs;
    await log.oldEntry({ path: "/before", recordedAt: at, at });
    const { id } = await exports.trusting();
    valueOf(await exports.operations.update(id, { status: "active" }));
    await log.appendPaths(["/since"]);
    await deliveryOf({ exports, log }, later).deliver(id);
    expect(cloud.lines().map(({ path }) => path)).toEqual(["/since"]);
  }));

test("a failure that was noted while the clock was ahead has nobody wait for that hour", () => {
  const now = Date.now();
  const failing = { ...destination, status: "active" as const, cursor: positionAt(now - 2 * hourMs) };
  const windows = { windowMs: 1000, holdMs: 0 };
  expect(isDue({ ...failing, nextAttemptAt: now + hourMs }, now, windows)).toBe(false);
  expect(isDue({ ...failing, nextAttemptAt: now + 2 * hourMs }, now, windows)).toBe(true);
});
