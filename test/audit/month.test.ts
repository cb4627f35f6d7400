import { randomInt } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Entry, positionOf } from "../../src/audit/entry.js";
import type { AuditFilter } from "../../src/audit/filter.js";
import { makeAuditReader } from "../../src/audit/read-page.js";
import { hashOf, packRows, type SealedSegment, summaryOf } from "../../src/audit/segment.js";
import { systemClock } from "../../src/base/clock.js";
import { type AuditBed, newEntry, openAuditBed } from "../support/audit/audit-bed.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";

const hourMs = 3_600_000;
const hours = 30 * 24;
/** Eight requests a second. */
const entriesOfHour = 30_000;
/** Hours that are made; the month has each of them many times. */
const madeHours = 3;

let server: TestRedis;
let stores: StoreBed;
let bed: AuditBed;
beforeAll(async () => {
  server = await startRedis();
  stores = await openStoreBed(server, { project: "audit-month" });
  bed = await openAuditBed(stores);
});
afterAll(async () => {
  await bed.close();
  await stores.close();
  await server.stop();
});

const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
const id = (): string => Array.from({ length: 24 }, () => letters[randomInt(letters.length)]).join("");
const one = <Value>(values: readonly [Value, ...Value[]]): Value =>
  values[randomInt(values.length)] ?? values[0];
const routes = ["browsers", "browser_pools", "profiles", "extensions"] as const;

type Entries = readonly [Entry, ...Entry[]];
/** What a busy deployment leaves in an hour: every id differs, users and addresses come again. */
function hourOf(start: number, more: Partial<Entry> = {}): Entries {
  const stepMs = hourMs / entriesOfHour;
  const entryAt = (index: number): Entry => {
    const at = Math.floor(start + index * stepMs);
    const user = randomInt(50);
    const {
      receivedAt: _,
      intent: _intent,
      ...facts
    } = newEntry({
      path: `/${one(routes)}/${id()}`,
      status: one([200, 200, 200, 201, 204, 404]),
      userId: `user-${user}`,
      email: `somebody${user}@example.com`,
      clientIp: `10.0.${randomInt(4)}.${randomInt(256)}`,
    });
    return { ...facts, at, position: positionOf(`${at}-${index}`) };
  };
  const rest = Array.from({ length: entriesOfHour - 1 }, (_, index) => entryAt(index + 1));
  return [{ ...entryAt(0), ...more }, ...rest];
}

interface Sealed {
  readonly entries: Entries;
  readonly archives: Pick<SealedSegment, "rows" | "grams">;
}
const sealed = async (entries: Entries): Promise<Sealed> => ({
  entries,
  archives: await bed.files.put(entries),
});

/** A month of segments in the manifest, the last of them as given. */
async function fill(made: readonly [Sealed, ...Sealed[]], last: Sealed): Promise<AuditFilter> {
  const start = Math.floor(Date.now() / hourMs) * hourMs - hours * hourMs;
  let before = { number: 0, hash: "" };
  for (let hour = 0; hour < hours; hour += 1) {
    const { entries, archives } = hour === hours - 1 ? last : (made[hour % made.length] ?? made[0]);
    const at = start + hour * hourMs;
    const [first, end] = [positionOf(`${at}-0`), positionOf(`${at + hourMs - 1}-0`)];
    const ends = [entries[0], entries.at(-1) ?? entries[0]] as const;
    const moved: Entries = [
      { ...ends[0], at, position: first },
      { ...ends[1], at: at + hourMs - 1, position: end },
    ];
    const summary = { ...summaryOf(moved, archives, before), count: entriesOfHour };
    const segment = { ...summary, hash: hashOf(summary) };
    await bed.redis.zadd("remuda:{audit}:auditSegments", segment.number, JSON.stringify(segment));
    before = segment;
  }
  await bed.redis.hset("remuda:{audit}:auditState", { last: before.number, hash: before.hash });
  return { start, end: start + hours * hourMs };
}

test("a search of thirty days for what few or no entries have reads their summaries, and of the entries next to nothing", async () => {
  const rare = id();
  const lastHour = Math.floor(Date.now() / hourMs) * hourMs - hourMs;
  const user = { userId: "user-rare", email: "rare@example.com" };
  const made = await Promise.all(Array.from({ length: madeHours }, () => sealed(hourOf(lastHour))));
  const last = await sealed(hourOf(lastHour, { path: `/browsers/${rare}`, ...user }));
  const [first, ...others] = made;
  if (!first) throw new Error("at least one hour is made");
  const filter = await fill([first, ...others], last);

  const fresh = bed.newFiles();
  let [summaries, segments] = [0, 0];
  const files = {
    grams: (segment: SealedSegment) => ((summaries += 1), fresh.grams(segment)),
    rows: (segment: SealedSegment) => ((segments += 1), fresh.rows(segment)),
  };
  const reader = makeAuditReader({ store: bed.audit, files, clock: { ...systemClock, monotonic: () => 0 } });
  const search = async (over: Partial<AuditFilter>): Promise<readonly string[]> => {
    [summaries, segments] = [0, 0];
    const got = await reader.page({ filter: { ...filter, ...over }, limit: 100 });
    if (got.kind === "refused") throw new Error(got.message);
    return got.value.entries.map(({ path }) => path);
  };

  const found = [`/browsers/${rare}`];
  expect([await search({ search: rare }), summaries, segments]).toEqual([found, hours, 1]);
  expect([await search({ search: "RARE@example" }), summaries, segments]).toEqual([found, hours, 1]);
  expect([await search({ searchUserIds: ["user-rare"] }), summaries, segments]).toEqual([found, hours, 1]);
  expect([await search({ search: id() }), summaries, segments]).toEqual([[], hours, 0]);
  expect([await search({ search: rare, method: "DELETE" }), summaries, segments]).toEqual([[], 0, 0]);

  const { rows, grams } = await packRows(first.entries);
  expect(grams.length).toBeLessThanOrEqual(128 * 1024);
  expect(grams.length / rows.length).toBeLessThan(1 / 8);
}, 400_000);
