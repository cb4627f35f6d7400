import { describe, expect, test } from "vitest";
import { type Got, send, sharedServer } from "../../support/http/http-server.js";

const server = sharedServer();
const start = "2026-01-01T00:00:00.000Z";
const at = Date.parse(start);
const dayMs = 24 * 3_600_000;
const instantOf = (ms: number): string => new Date(ms).toISOString();
const range = { start, end: instantOf(at + dayMs) };

type Query = Readonly<Record<string, string>>;
const ask = (path: string, query: Query): Promise<Got> =>
  send(`${server().url}${path}?${new URLSearchParams(query)}`);
/** What the log was asked for. */
const askedFor = (): unknown[] => server().operations.calls.map(({ args: [request] }) => request);

const routes = [
  { path: "/audit-logs", most: 100, usual: { limit: 100 } },
  { path: "/audit-logs/export/chunk", most: 50_000, usual: { limit: 50_000, isPacked: true } },
];

describe.each(routes)("$path", ({ path, most, usual }) => {
  test("a range of 30 days is read to the millisecond, and one that is a millisecond longer is refused", async () => {
    const end = at + 30 * dayMs;
    expect(await ask(path, { start, end: instantOf(end) })).toMatchObject({ status: 200 });
    expect(askedFor()).toMatchObject([{ filter: { start: at, end } }]);
    for (const longer of [
      { start, end: instantOf(end + 1) },
      { start: instantOf(at - 1), end: instantOf(end) },
    ])
      expect(await ask(path, longer)).toMatchObject(refusedFor("end: must be at most 30 days after start"));
    expect(askedFor()).toHaveLength(1);
  });

  test("a range without its start, its end or any time between them is refused", async () => {
    for (const missing of ["start", "end"] as const) {
      const { [missing]: _, ...rest } = range;
      expect(await ask(path, rest)).toMatchObject(refusedFor(expect.stringContaining(missing)));
      expect(await ask(path, { ...range, [missing]: "" })).toMatchObject(
        refusedFor(`${missing}: must be an instant such as 2026-01-31T12:00:00Z`),
      );
    }
    for (const end of [start, instantOf(at - 1)])
      expect(await ask(path, { start, end })).toMatchObject(refusedFor("end: must be after start"));
    expect(askedFor()).toEqual([]);
    expect(await ask(path, { start, end: instantOf(at + 1) })).toMatchObject({ status: 200 });
  });

  test("as many entries as may be asked for are, and neither none nor one more", async () => {
    for (const limit of [1, most])
      expect(await ask(path, { ...range, limit: String(limit) })).toMatchObject({ status: 200 });
    expect(askedFor()).toMatchObject([{ limit: 1 }, { limit: most }]);
    for (const limit of [0, -1, most + 1, 1.5])
      expect(await ask(path, { ...range, limit: String(limit) })).toMatchObject(
        refusedFor(expect.stringContaining("limit")),
      );
    expect(askedFor()).toHaveLength(2);
  });

  test("what is not asked for is as the document says", async () => {
    expect(await ask(path, range)).toMatchObject({ status: 200 });
    const filter = { start: at, end: at + dayMs };
    expect(askedFor()).toEqual([{ filter, ...usual, gone: expect.any(AbortSignal) as AbortSignal }]);
  });
});

const refusedFor = (message: unknown): object => ({
  status: 400,
  body: { code: "bad_request", details: [{ message }] },
});

test("a page says how many entries it may have, and a chunk is plain lines only where it is asked to be", async () => {
  const { headers } = await ask("/audit-logs", range);
  expect(headers.get("x-limit")).toBe("100");
  expect((await ask("/audit-logs", { ...range, limit: "7" })).headers.get("x-limit")).toBe("7");
  await ask("/audit-logs/export/chunk", { ...range, format: "jsonl" });
  expect(askedFor().at(-1)).toMatchObject({ isPacked: false });
});
