import { expect, test } from "vitest";
import { longestMs, positionAt } from "../../../src/audit/entry.js";
import { RedisAuditStore } from "../../../src/store/organization/audit-store.js";
import { summaryOf } from "../../../src/audit/segment.js";
import type { Digest } from "../../../src/base/ids.js";
import { newEntry } from "../../support/audit/audit-bed.js";
import { onBoth } from "../../support/store/on-both.js";

const roomy = 2 ** 30;
const future = positionAt(Date.now() + longestMs * 1000);

onBoth("the audit log's newest part", ({ bed }) => {
  const open = (mostBytes = roomy) => new RedisAuditStore(bed().store, mostBytes);
  const batch = (number: number, paths: readonly string[]) => ({
    writer: "one",
    number,
    entries: paths.map((path) => newEntry({ path })),
    sentAt: 5,
  });
  const archives = { rows: "a".repeat(64) as Digest, grams: "b".repeat(64) as Digest };

  test("entries are read as they were written, newest first, received as long ago as they are old", async () => {
    const audit = open();
    const entry = newEntry({ path: "/ä", status: 404, durationMs: 7.4, email: "", userAgent: 'a"b' });
    await audit.append({ ...batch(1, []), entries: [entry, newEntry({ path: "/second" })], sentAt: 5000 });
    const [second, first, ...none] = await audit.newest(future, 0, 10);
    const { receivedAt: _, ...facts } = entry;
    expect(first).toMatchObject({ ...facts, durationMs: 7 });
    expect(second?.path).toBe("/second");
    expect(none).toEqual([]);
    // Both are whole milliseconds of a time that is not.
    expect(Math.abs(Number(first?.position.slice(0, 13)) - (first?.at ?? 0) - 5000)).toBeLessThanOrEqual(1);
    expect(second && first && second.position > first.position).toBe(true);
    expect((await audit.oldest(undefined, 10)).map(({ path }) => path)).toEqual(["/ä", "/second"]);
    expect((await audit.oldest(first?.position, 10)).map(({ path }) => path)).toEqual(["/second"]);
    expect(await audit.newest(first?.position ?? future, 0, 10)).toEqual([]);
    expect(await audit.newest(future, Date.now() + longestMs, 10)).toEqual([]);
  });

  test("a batch that comes again is taken once, also when later ones came between", async () => {
    const audit = open();
    for (const number of [1, 1, 2, 1, 2]) await audit.append(batch(number, [`/${number}`]));
    expect((await audit.oldest(undefined, 10)).map(({ path }) => path)).toEqual(["/1", "/2"]);
    await audit.append({ ...batch(1, ["/other"]), writer: "two" });
    expect((await audit.size()).entries).toBe(3);
  });

  test("what is full takes nothing, and takes again once entries are sealed", async () => {
    const audit = open(1000);
    expect(
      await audit.append(
        batch(
          1,
          Array.from({ length: 20 }, () => "/filling"),
        ),
      ),
    ).toBe("appended");
    expect(await audit.append(batch(2, ["/more"]))).toBe("full");
    const entries = await audit.oldest(undefined, 100);
    const [first, ...rest] = entries;
    if (!first) throw new Error("nothing was taken");
    const segment = summaryOf([first, ...rest], archives, { number: 0, hash: "" });
    expect(await audit.commit(segment, [first, ...rest], Date.now())).toBe("committed");
    expect(await audit.size()).toMatchObject({ entries: 0, bytes: 0 });
    expect(await audit.append(batch(3, ["/more"]))).toBe("appended");
  });

  test("entries leave the stream in the command that enters their segment; a segment made of what is sealed already is none", async () => {
    const audit = open();
    expect(await audit.manifest()).toEqual({ first: 1, last: 0, hash: "" });
    await audit.append(batch(1, ["/1", "/2", "/3"]));
    const [one, two] = await audit.oldest(undefined, 2);
    if (!one || !two) throw new Error("nothing was taken");
    const segment = summaryOf([one, two], archives, { number: 0, hash: "" });
    expect(await audit.commit(segment, [one, two], Date.now())).toBe("committed");
    // Its reply may have been lost.
    expect(await audit.commit(segment, [one, two], Date.now())).toBe("committed");
    const other = summaryOf([one], archives, { number: 0, hash: "" });
    expect(await audit.commit(other, [one], Date.now())).toBe("stale");
    const late = summaryOf([two], archives, { number: 1, hash: segment.hash });
    expect(await audit.commit(late, [two], Date.now())).toBe("stale");
    expect((await audit.oldest(undefined, 10)).map(({ path }) => path)).toEqual(["/3"]);
    expect(await audit.manifest()).toEqual({ first: 1, last: 1, hash: segment.hash });
    expect(await audit.segments(1, 9)).toEqual([segment]);
    expect(await audit.archives()).toEqual([archives.rows, archives.grams]);
    await audit.drop(segment);
    const forgotten = segment.last;
    expect(await audit.manifest()).toEqual({ first: 2, last: 1, hash: segment.hash, forgotten });
    expect(await audit.segments(1, 9)).toEqual([]);
  });
});
