import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { JournalFiles } from "../../../src/node/journal/journal-files.js";
import type { Browser } from "../../../src/pool/browser.js";
import { until } from "../../support/browser/chromium-until.js";
import { makeLogBook } from "../../support/http/http-server.js";
import { JournalBed, written } from "../../support/node/journal-bed.js";
import { oneSlot } from "../../support/node/one-slot.js";
import { bedSeal } from "../../support/node/node-bed.js";

let bed: JournalBed;
let count = 0;
beforeEach(async () => void (bed = await JournalBed.open(`movedjournal${(count += 1)}`)));
afterEach(() => bed.close());

const nothing = { pools: 0, browsers: 0, leases: 0 };

test("nothing is restored into another Redis than the journal was written for", async () => {
  const { pool, kept } = await bed.keptPool();
  await kept.journal.close();
  await bed.forget();
  const moved = await bed.openJournal({ redis: "another" });
  await moved.recovery.check();
  expect([moved.counts, await pool.dump()]).toEqual([[], {}]);
  await bed.forget();
  await moved.recovery.check();
  expect([moved.counts, await pool.dump()]).toEqual([[nothing], {}]);
});

test("nothing is restored where a daemon that was moved there has started once more", async () => {
  const { pool, kept } = await bed.keptPool();
  await kept.journal.close();
  await bed.forget();
  const moved = await bed.openJournal({ redis: "another" });
  await moved.recovery.check();
  await moved.journal.close();
  const again = await bed.openJournal({ redis: "another" });
  await again.recovery.check();
  await bed.forget();
  await again.recovery.check();
  expect([again.counts, await pool.dump()]).toEqual([[nothing], {}]);
});

test("nothing is restored from a journal that does not say which Redis it was written for", async () => {
  const { pool, kept } = await bed.keptPool();
  await kept.journal.close();
  rmSync(join(bed.directory, "dataset.sealed"));
  await bed.forget();
  const next = await bed.openJournal();
  await next.recovery.check();
  await bed.forget();
  await next.recovery.check();
  expect([next.counts, await pool.dump()]).toEqual([[nothing], {}]);
});

test("a Redis that has another name only is journalled anew, with pools that have no browser here any more", async () => {
  const { pool, slot, kept } = await bed.keptPool({ name: "herd" });
  await kept.journal.close();
  await bed.node.slots.end(slot);
  const moved = await bed.openJournal({ redis: "another" });
  expect(moved.journal.entries()).toEqual([]);
  await moved.recovery.check();
  await until("the entry", () => written(moved) > 0);
  await moved.journal.close();
  const next = await bed.openJournal({ redis: "another" });
  await bed.forget();
  await next.recovery.check();
  expect(next.counts).toEqual([{ pools: 1, browsers: 0, leases: 0 }]);
  expect((await pool.found()).spec).toMatchObject({ name: "herd" });
});

test("what one Redis has is not believed of another, while an entry of that other cannot be looked up", async () => {
  const { pool, kept } = await bed.keptPool();
  await kept.journal.close();
  await bed.node.bed.redis.set(pool.key("pool"), "no record");
  const moved = await bed.openJournal({ redis: "another" });
  await moved.recovery.check();
  await bed.write(moved, (await oneSlot(bed.node)).pool);
  await moved.journal.close();
  const back = await bed.openJournal();
  expect(back.journal.entries()).toEqual([]);
});

test("a journal is still there for a daemon that comes back from a Redis that did not answer", async () => {
  const { pool, slot, kept } = await bed.keptPool();
  await kept.journal.close();
  const moved = await bed.openJournal({ redis: "another" });
  await moved.journal.sweep();
  await moved.journal.close();
  await bed.forget();
  const back = await bed.openJournal();
  await back.recovery.check();
  expect(await pool.state(slot.id)).toBe("idle");
});

test.each([
  ["with browsers", (browsers: readonly Browser[]) => browsers],
  ["without browsers", () => []],
])("an entry of an older schema %s is neither kept nor restored, and is removed", async (_, left) => {
  const { pool, kept } = await bed.keptPool();
  await kept.journal.close();
  await bed.forget();
  const [{ browsers = [], ...others } = {}] = kept.journal.entries();
  const older = left(browsers).map(({ templateKey: config, ...browser }) => ({ ...browser, config }));
  const { log } = makeLogBook();
  const files = await JournalFiles.open({ directory: bed.directory, seal: bedSeal, log, mostBytes: 2 ** 20 });
  await files.write(pool.partition, { ...others, browsers: older });
  const next = await bed.openJournal({ redis: "another" });
  expect(next.journal.entries()).toEqual([]);
  await next.recovery.check();
  await until("its end", () => readdirSync(bed.directory).join(" ") === "dataset.sealed");
});
