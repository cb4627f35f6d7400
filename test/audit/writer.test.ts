import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { AuditStore } from "../../src/audit/audit-store.js";
import { AuditWriter } from "../../src/audit/writer.js";
import { longestMs } from "../../src/audit/entry.js";
import { RedisAuditStore } from "../../src/store/organization/audit-store.js";
import { newEntry } from "../support/audit/audit-bed.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { DrivenClock } from "../support/driven-clock.js";
import { type Broken, failing } from "../support/failing.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";

let server: TestRedis;
let bed: StoreBed;
beforeAll(async () => {
  server = await startRedis();
  bed = await openStoreBed(server, { project: "audit-writer" });
});
afterAll(async () => {
  await bed.close();
  await server.stop();
});
beforeEach(() => bed.redis.flushall());

function openWriter(mostBytes = 2 ** 30) {
  const clock = new DrivenClock();
  const broken: Broken = new Set();
  const lost: Record<string, number> = {};
  const audit = new RedisAuditStore(bed.store, mostBytes);
  const meter = {
    recorded() {},
    lost: (reason: string, count: number) => void (lost[reason] = (lost[reason] ?? 0) + count),
  };
  const openOn = (store: Pick<AuditStore, "append" | "noteIntent">, id = "another"): AuditWriter =>
    new AuditWriter({ store, clock, log: silentLog, meter, id });
  const writer = openOn(failing(audit, broken), "writer");
  const record = (path: string): void => writer.record(newEntry({ path, receivedAt: clock.monotonic() }));
  const written = async (): Promise<string[]> =>
    (await audit.oldest(undefined, 50_000)).map(({ path }) => path);
  return { clock, audit, broken, lost, writer, record, written, openOn };
}
const paths = (count: number): string[] => Array.from({ length: count }, (_, index) => `/${index}`);

test("entries are written together a moment later, in their order; the last ones when the daemon stops", async () => {
  const { clock, writer, record, written } = openWriter();
  paths(250).forEach(record);
  expect(await written()).toEqual([]);
  await clock.advance(20);
  await writer.recordNow(newEntry({ path: "/now", receivedAt: clock.monotonic() }));
  expect(await written()).toEqual([...paths(250), "/now"]);
  record("/last");
  await writer.close();
  expect(await written()).toEqual([...paths(250), "/now", "/last"]);
});

test("an entry is sent 20 ms after the first that waits with it, or as soon as the write before is over", async () => {
  const { clock, audit, record, written, openOn } = openWriter();
  record("/first");
  await clock.advance(19);
  record("/soon-after");
  expect(await written()).toEqual([]);
  await clock.advance(1);
  await expect.poll(written).toEqual(["/first", "/soon-after"]);
  // The others come while Redis takes its time, and wait for no timer of their own.
  let answer = (): void => {};
  const slowly = new Promise<void>((resolve) => (answer = resolve));
  const slow = openOn({
    noteIntent: (...asked) => audit.noteIntent(...asked),
    append: (...asked) => slowly.then(() => audit.append(...asked)),
  });
  const recordThere = (path: string): void => slow.record(newEntry({ path, receivedAt: clock.monotonic() }));
  recordThere("/under-way");
  await clock.advance(20);
  for (const path of paths(150)) recordThere(path);
  await clock.advance(1000);
  answer();
  await expect.poll(written).toEqual(["/first", "/soon-after", "/under-way", ...paths(150)]);
});

test("what Redis has taken without a word is written once, what it has not comes later, in the same order", async () => {
  const { clock, broken, lost, writer, record, written } = openWriter();
  broken.add("append!");
  record("/taken");
  await expect(writer.recordNow(newEntry({ path: "/told" }))).rejects.toThrow(
    expect.objectContaining({ code: "audit_unavailable" }),
  );
  broken.clear();
  broken.add("append");
  await clock.advance(200);
  record("/waits");
  await expect(writer.recordNow(newEntry({ path: "/waits-too" }))).rejects.toThrow();
  broken.clear();
  record("/after");
  await writer.close();
  expect(await written()).toEqual(["/taken", "/told", "/waits", "/waits-too", "/after"]);
  expect(lost).toEqual({});
});

test("while Redis is away no more wait than may, and what waits for too long is lost; all are counted", async () => {
  const { clock, broken, lost, writer, record, written } = openWriter();
  broken.add("append");
  await expect(writer.recordNow(newEntry({ path: "/old" }))).rejects.toThrow();
  for (let count = 0; count < 20_003; count += 1) record(`/${count}`);
  expect(lost).toEqual({ too_many: 3 });
  clock.stand(longestMs + 1);
  broken.clear();
  await writer.recordNow(newEntry({ path: "/back", receivedAt: clock.monotonic() }));
  await writer.close();
  expect(lost).toEqual({ too_many: 3, store_away: 20_001 });
  expect(await written()).toEqual(["/back"]);
});

test("however many entries wait, what a change leaves is taken, since it was made", async () => {
  const { clock, lost, writer, record, written } = openWriter();
  paths(20_000).forEach(record);
  const changed = writer.recordNow(newEntry({ path: "/changed", receivedAt: clock.monotonic() }));
  await changed;
  expect(lost).toEqual({});
  expect((await written()).at(-1)).toBe("/changed");
  await writer.close();
});

test("a full log takes nothing more, counts what is lost, and says so before anything is done", async () => {
  const { lost, writer, record, written } = openWriter(500);
  await writer.begin("begun", newEntry({ path: "/begun", receivedAt: 0 }));
  await writer.recordNow(newEntry({ path: "/".padEnd(600, "x") }));
  await expect(writer.begin("refused", newEntry())).rejects.toThrow(
    expect.objectContaining({ code: "audit_unavailable" }),
  );
  await expect(writer.recordNow(newEntry({ path: "/more" }))).rejects.toThrow();
  record("/and-more");
  await writer.close();
  expect(lost).toEqual({ log_full: 2 });
  expect(await written()).toHaveLength(1);
});

test("a change that was refused since no answer came to its intent has one entry, that of its refusal", async () => {
  const { audit, broken, clock, writer, written } = openWriter();
  broken.add("noteIntent!");
  const entry = newEntry({ path: "/refused", receivedAt: clock.monotonic() });
  await expect(writer.begin("one", entry)).rejects.toThrow("Redis has not answered");
  await writer.recordNow({ ...entry, status: 503, intent: "one" });
  expect(await audit.settleIntents(0)).toBe(0);
  expect(await written()).toEqual(["/refused"]);
});

test("a change that comes at the very end of a write is written too", async () => {
  const { clock, writer, written } = openWriter();
  const now = (path: string): Promise<void> =>
    writer.recordNow(newEntry({ path, receivedAt: clock.monotonic() }));
  const turns = Array.from({ length: 12 }, (_, turn) => turn);
  for (const turn of turns) {
    await now(`/${turn}`);
    for (let waited = 0; waited < turn; waited += 1) await Promise.resolve();
    await now(`/${turn}-later`);
  }
  expect(await written()).toHaveLength(2 * turns.length);
});

test("a daemon that stops while Redis does not answer waits for it so long and no longer", async () => {
  const { clock, lost } = openWriter();
  const never = { append: () => new Promise<never>(() => {}), noteIntent: async () => "noted" as const };
  const meter = {
    recorded() {},
    lost: (reason: string, count: number) => void (lost[reason] = (lost[reason] ?? 0) + count),
  };
  const writer = new AuditWriter({ store: never, clock, log: silentLog, meter, id: "writer" });
  writer.record(newEntry({ path: "/0", receivedAt: clock.monotonic() }));
  await clock.advance(40);
  writer.record(newEntry({ path: "/1", receivedAt: clock.monotonic() }));
  const closed = writer.close();
  await clock.advance(2000);
  await closed;
  expect(lost).toEqual({ store_away: 2 });
});
