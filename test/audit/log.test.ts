import { expect, test } from "vitest";
import { longestMs } from "../../src/audit/entry.js";
import { makeSeal } from "../../src/audit/seal.js";
import { type AuditBed, always, newEntry, openAuditBed } from "../support/audit/audit-bed.js";
import { onBoth } from "../support/store/on-both.js";

onBoth("the audit log", ({ bed: stores }) => {
  async function withLog(
    work: (bed: AuditBed) => Promise<void>,
    options: Parameters<typeof openAuditBed>[1] = {},
  ): Promise<void> {
    const opened = await openAuditBed(stores(), options);
    try {
      await work(opened);
    } finally {
      await opened.close();
    }
  }

  const paths = (count: number, start = 0): string[] =>
    Array.from({ length: count }, (_, index) => `/${start + index}`);
  const pathsOf = (entries: readonly { path: string }[]): string[] => entries.map(({ path }) => path);

  test("a list is the same before and after its entries are sealed, and as the chunks have it", () =>
    withLog(
      async (bed) => {
        await bed.appendPaths(paths(25));
        const before = await bed.all();
        expect(pathsOf(before)).toEqual(paths(25).toReversed());
        await bed.seal();
        expect((await bed.audit.size()).entries).toBe(0);
        expect((await bed.audit.manifest()).last).toBe(3);
        await bed.appendPaths(["/25"]);
        const after = await bed.all();
        expect(pathsOf(after)).toEqual(paths(26).toReversed());
        expect(after.slice(1)).toEqual(before);
        const chunk = await bed.reader.chunk({ filter: always(), limit: 100, isPacked: false });
        if (chunk.kind === "refused") throw new Error(chunk.message);
        const lines = chunk.value.bytes
          .toString()
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line));
        expect(lines.map(({ event_id: id, path }) => [id, path])).toEqual(
          after.map(({ position, path }) => [position, path]),
        );
      },
      { segmentEntries: 10 },
    ));

  test("a chunk that is asked for again has the same bytes, whatever was written or sealed meanwhile", () =>
    withLog(async (bed) => {
      await bed.appendPaths(paths(30));
      const filter = always();
      const first = await bed.reader.chunk({ filter, limit: 10, isPacked: true });
      if (first.kind === "refused" || first.value.next === undefined)
        throw new Error("there is one more chunk");
      const ask = () =>
        bed.reader.chunk({
          filter,
          limit: 10,
          isPacked: true,
          token: (first.value as { next: string }).next,
        });
      const second = await ask();
      await bed.appendPaths(paths(5, 30));
      expect(await ask()).toEqual(second);
      await bed.seal();
      expect(await ask()).toEqual(second);
      expect(second).toMatchObject({ value: { count: 10 } });
    }));

  test("a reader that pages while entries are written and sealed sees each of those before its first page once", () =>
    withLog(
      async (bed) => {
        await bed.appendPaths(paths(60));
        let written = 60;
        const seen: string[] = [];
        const filter = always();
        for (let token: string | undefined, isOver = false; !isOver;) {
          const page = await bed.page(filter, 9, token);
          seen.push(...pathsOf(page.entries));
          token = page.next;
          isOver = token === undefined;
          await bed.appendPaths(paths(5, written));
          written += 5;
          if (token !== undefined) await bed.seal();
        }
        expect(seen).toEqual(paths(60).toReversed());
      },
      { segmentEntries: 20 },
    ));

  test("pages of a filter are never empty while there is more, and end where nothing more is", () =>
    withLog(
      async (bed) => {
        const methods = (index: number) => (index % 40 === 0 ? "DELETE" : "GET");
        await bed.append(paths(400).map((path, index) => newEntry({ path, method: methods(index) })));
        await bed.seal();
        const filter = { ...always(), method: "DELETE" };
        const found: string[] = [];
        for (let token: string | undefined, isOver = false; !isOver;) {
          const page = await bed.page(filter, 5, token);
          expect(page.entries).toHaveLength(5);
          found.push(...pathsOf(page.entries));
          token = page.next;
          isOver = token === undefined;
        }
        expect(found).toEqual(["/360", "/320", "/280", "/240", "/200", "/160", "/120", "/80", "/40", "/0"]);
        expect(await bed.page({ ...always(), method: "PUT" })).toEqual({ entries: [] });
      },
      { segmentEntries: 100 },
    ));

  test("the entry of a killed control's change is in the range of its request, however late it is made, sealed too", () =>
    withLog(async (bed) => {
      const hours = (count: number): number => (count * longestMs) / 2;
      const entry = newEntry({ path: "/org/api_keys", method: "POST", status: 0, receivedAt: 0 });
      await bed.audit.noteIntent({ id: "killed", entry, sentAt: hours(3) });
      await bed.appendPaths(["/now"]);
      expect(await bed.audit.settleIntents(0)).toBe(1);
      const now = Date.now();
      const then = { start: now - hours(4), end: now - hours(2.5) };
      expect(pathsOf(await bed.all(then))).toEqual(["/org/api_keys"]);
      await bed.seal();
      expect((await bed.audit.size()).entries).toBe(0);
      expect(pathsOf(await bed.all(then))).toEqual(["/org/api_keys"]);
      expect(pathsOf(await bed.all({ start: now - hours(2.5), end: now - hours(1) }))).toEqual([]);
    }));

  test("ranges before and after all that can be recorded are empty", () =>
    withLog(async (bed) => {
      await bed.appendPaths(paths(2));
      await bed.seal();
      await bed.appendPaths(paths(2));
      const ranges = [
        ["0000-01-01T00:00:00Z", "0000-01-10T00:00:00Z"],
        ["1969-12-01T00:00:00Z", "1970-01-01T00:00:00Z"],
        ["2286-11-20T00:00:00Z", "2286-11-30T00:00:00Z"],
        ["9999-12-01T00:00:00Z", "9999-12-31T00:00:00Z"],
      ] as const;
      for (const [start, end] of ranges)
        expect(await bed.page({ start: Date.parse(start), end: Date.parse(end) })).toEqual({ entries: [] });
    }));

  test("a token is that of its range and filters alone", () =>
    withLog(async (bed) => {
      await bed.appendPaths(paths(5));
      const filter = always();
      const { next: token = "", entries } = await bed.page(filter, 2);
      // What an export destination shows of its place in the log.
      const cursor = Buffer.from(`1 ${entries[0]?.position}`).toString("base64url");
      const refusals = await Promise.all([
        bed.reader.page({ filter: { ...filter, method: "GET" }, limit: 2, token }),
        bed.reader.page({ filter: { ...filter, end: filter.end + 1 }, limit: 2, token }),
        bed.reader.page({ filter, limit: 2, token: `${token}x` }),
        bed.reader.chunk({ filter, limit: 2, token, isPacked: false }),
        bed.reader.page({ filter, limit: 2, token: cursor }),
        bed.reader.chunk({ filter, limit: 2, token: cursor, isPacked: false }),
      ]);
      expect(refusals.map(({ kind }) => kind)).toEqual(Array(6).fill("refused"));
    }));

  test("a search reads only segments whose summary may hold it", () =>
    withLog(
      async (bed) => {
        const id = (index: number): string => `${"abcdefghij"[index] ?? ""}`.repeat(24);
        for (let index = 0; index < 10; index += 1)
          await bed.append([newEntry({ path: `/browsers/${id(index)}`, userId: `user-${index}` })]);
        await bed.seal();
        expect((await bed.audit.manifest()).last).toBe(10);
        const { reader, read } = bed.counting();
        const search = async (over: object): Promise<string[]> => {
          const got = await reader.page({ filter: { ...always(), ...over }, limit: 100 });
          return got.kind === "refused" ? [] : pathsOf(got.value.entries);
        };
        expect(await search({ search: id(4).toUpperCase() })).toEqual([`/browsers/${id(4)}`]);
        expect(await search({ search: "nowhere@example.com" })).toEqual([]);
        expect(read).toHaveLength(1);
        expect(await search({ search: id(4), searchUserIds: ["user-7"] })).toEqual([
          `/browsers/${id(7)}`,
          `/browsers/${id(4)}`,
        ]);
        // The range, the method and whose request it was stand in the manifest itself.
        expect(await search({ end: Date.now() - longestMs * 2 })).toEqual([]);
        expect(await search({ method: "DELETE" })).toEqual([]);
        expect(await search({ excludedMethods: ["GET"] })).toEqual([]);
        expect(await search({ authStrategy: "oauth" })).toEqual([]);
        expect(await search({ service: "other" })).toEqual([]);
        expect(read.length).toBeLessThanOrEqual(3);
        expect(await search({ search: "404" })).toEqual([]);
        expect(await search({ search: "20" })).toHaveLength(10);
      },
      { segmentEntries: 1 },
    ));

  test("two daemons that seal at once seal each entry once", () =>
    withLog(
      async (bed) => {
        await bed.appendPaths(paths(30));
        const others = Array.from({ length: 3 }, () => makeSeal({ ...bed.sealing, files: bed.newFiles() }));
        // Whoever comes second may leave the rest to the first.
        await Promise.all(others.map((seal) => seal()));
        await bed.seal();
        expect((await bed.audit.size()).entries).toBe(0);
        expect(pathsOf(await bed.all())).toEqual(paths(30).toReversed());
        const segments = await bed.audit.segments(1, 100);
        expect(segments.map(({ count }) => count)).toEqual([10, 10, 10]);
      },
      { segmentEntries: 10 },
    ));

  test("one that is killed before it commits has changed nothing, and what it has put is named by nobody", () =>
    withLog(async (bed) => {
      await bed.appendPaths(paths(10));
      const put = await bed.files.put((await bed.audit.oldest(undefined, 4)) ?? []);
      expect(pathsOf(await bed.all())).toEqual(paths(10).toReversed());
      await bed.seal();
      expect(pathsOf(await bed.all())).toEqual(paths(10).toReversed());
      expect(await bed.audit.archives()).not.toContain(put.rows);
      expect(await bed.archived()).toHaveLength(3);
    }));

  test("entries are sealed when their hour is over for as long as they stay in Redis, or when there are many", () =>
    withLog(
      async (bed) => {
        await bed.oldEntries(["/old-1", "/old-2"], 3 * longestMs);
        await bed.appendPaths(paths(10));
        await bed.seal();
        expect(pathsOf(await bed.audit.oldest(undefined, 100))).toEqual(paths(10));
        await makeSeal({ ...bed.sealing, sealBytes: 100 })();
        expect((await bed.audit.size()).entries).toBe(0);
      },
      { hotMs: longestMs, sealBytes: 2 ** 30 },
    ));

  test("segments older than they are kept are forgotten, the others stay", () =>
    withLog(async (bed) => {
      await bed.oldEntries(["/old"], 3 * longestMs);
      await bed.seal();
      await bed.appendPaths(["/new"]);
      await makeSeal({ ...bed.sealing, keepMs: 2 * longestMs })();
      expect(pathsOf(await bed.all())).toEqual(["/new"]);
      expect(await bed.audit.manifest()).toMatchObject({ first: 2, last: 2 });
    }));
});
