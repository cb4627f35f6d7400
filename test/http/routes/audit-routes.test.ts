import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { NewEntry } from "../../../src/audit/entry.js";
import type { AuditReader } from "../../../src/audit/read-page.js";
import type { AuditChunkQuery, AuditQuery } from "../../../src/http/schemas/requests.js";
import { type AuditBed, newEntry, openAuditBed } from "../../support/audit/audit-bed.js";
import { key, send, sharedServer } from "../../support/http/http-server.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../../support/store/store-bed.js";

let redis: TestRedis;
let stores: StoreBed;
let bed: AuditBed;
const auditLog: AuditReader = { page: (ask) => bed.reader.page(ask), chunk: (ask) => bed.reader.chunk(ask) };
const server = sharedServer({}, { auditLog });
const hourMs = 3_600_000;
/** Entries by number, as their paths have them; each filter has some that fit and some that do not. */
const recorded: readonly Partial<NewEntry>[] = [
  { userId: "ann", email: "ann@remuda.invalid" },
  { userId: "bob", email: "bob@Elsewhere.invalid", authStrategy: "oauth", status: 404 },
  { userId: "cleo", authStrategy: "dashboard", method: "DELETE", clientIp: "2001:db8::c1e0" },
  { userId: "ann", email: "ann@remuda.invalid", method: "POST", status: 201 },
  // Its request has come before the range that the tests ask for.
  { userId: "dan", receivedAt: -2 * hourMs },
];
beforeAll(async () => {
  redis = await startRedis();
  stores = await openStoreBed(redis, { project: "audit-routes" });
  bed = await openAuditBed(stores);
  await bed.append(recorded.map((entry, index) => newEntry({ path: `/browsers/${index}`, ...entry })));
});
afterAll(async () => {
  await bed.close();
  await stores.close();
  await redis.stop();
});

const hoursFromNow = (hours: number): string => new Date(Date.now() + hours * hourMs).toISOString();
const range = { start: hoursFromNow(-1), end: hoursFromNow(1) };
const queryOf = (over: Readonly<Record<string, string>>): string =>
  new URLSearchParams({ ...range, ...over }).toString();

interface Chunk {
  readonly bytes: Buffer;
  readonly headers: Headers;
}
async function chunkOf(over: Readonly<Record<string, string>>): Promise<Chunk> {
  const url = `${server().url}/audit-logs/export/chunk?${queryOf(over)}`;
  const reply = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  expect(reply.status).toBe(200);
  return { bytes: Buffer.from(await reply.arrayBuffer()), headers: reply.headers };
}
const sumOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const pathsIn = (text: string): string[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (JSON.parse(line) as { path: string }).path);

test.each([
  ["jsonl", (bytes: Buffer) => bytes.toString()],
  ["jsonl.gz", (bytes: Buffer) => gunzipSync(bytes).toString()],
])(
  "a chunk as %s has the sum of its bytes as they are sent, its rows' number, and where it goes on",
  async (format, textIn) => {
    const first = await chunkOf({ format, limit: "3" });
    expect(first.headers.get("x-content-sha256")).toBe(sumOf(first.bytes));
    expect(first.headers.get("x-row-count")).toBe("3");
    expect(first.headers.get("x-has-more")).toBe("true");
    expect(first.headers.get("content-encoding")).toBeNull();
    expect(pathsIn(textIn(first.bytes))).toEqual(["/browsers/3", "/browsers/2", "/browsers/1"]);

    const cursor = first.headers.get("x-next-cursor") ?? "";
    const next = await chunkOf({ format, limit: "3", cursor });
    expect(next.headers.get("x-content-sha256")).toBe(sumOf(next.bytes));
    expect(next.headers.get("x-row-count")).toBe("1");
    expect(next.headers.get("x-has-more")).toBe("false");
    expect(next.headers.get("x-next-cursor")).toBeNull();
    expect(pathsIn(textIn(next.bytes))).toEqual(["/browsers/0"]);
    expect((await chunkOf({ format, limit: "3", cursor })).bytes).toEqual(next.bytes);
  },
);

test("a chunk without entries has a sum as well", async () => {
  for (const format of ["jsonl", "jsonl.gz"]) {
    const { bytes, headers } = await chunkOf({ format, search: "nowhere" });
    expect(headers.get("x-content-sha256")).toBe(sumOf(bytes));
    expect(headers.get("x-row-count")).toBe("0");
  }
});

const listed = async (over: Readonly<Record<string, string>>): Promise<string[]> => {
  const { status, body } = await send(`${server().url}/audit-logs?${queryOf(over)}`);
  expect(status).toBe(200);
  return (body as { path: string }[]).map(({ path }) => path);
};

type Filter = Exclude<
  keyof typeof AuditQuery.properties | keyof typeof AuditChunkQuery.properties,
  "limit" | "page_token" | "cursor" | "format"
>;
/** Which entries, newest first, a filter's values select. */
const selects: Readonly<Record<Filter, Readonly<Record<string, readonly number[]>>>> = {
  start: { [hoursFromNow(-3)]: [4, 3, 2, 1, 0], [hoursFromNow(0.5)]: [] },
  end: { [hoursFromNow(-0.5)]: [], [hoursFromNow(0.5)]: [3, 2, 1, 0] },
  auth_strategy: { api_key: [3, 0], oauth: [1], dashboard: [2] },
  service: { api: [3, 2, 1, 0], browsers: [] },
  method: { GET: [1, 0], delete: [2] },
  exclude_method: { GET: [3, 2], "get,Delete": [3] },
  search: { "ROWSERS/2": [2], cLe: [2], "bob@elsewhere": [1], "DB8::C1": [2], 404: [1] },
  search_user_id: { ann: [3, 0], "bob,cleo": [2, 1] },
};

test.each(Object.entries(selects))(
  "%s selects the entries that fit and no others, in lists and in chunks",
  async (filter, values) => {
    for (const [value, found] of Object.entries(values)) {
      const paths = found.map((index) => `/browsers/${index}`);
      expect(await listed({ [filter]: value }), value).toEqual(paths);
      const { bytes } = await chunkOf({ [filter]: value, format: "jsonl" });
      expect(pathsIn(bytes.toString()), value).toEqual(paths);
    }
  },
);

test("entries of named users are found beside those that a search finds, in lists and in chunks", async () => {
  expect(await listed({ search_user_id: "ann" })).toEqual(["/browsers/3", "/browsers/0"]);
  expect(await listed({ search_user_id: "ann,cleo" })).toEqual(["/browsers/3", "/browsers/2", "/browsers/0"]);
  expect(await listed({ search_user_id: "ann", search: "BROWSERS/1" })).toEqual([
    "/browsers/3",
    "/browsers/1",
    "/browsers/0",
  ]);
  expect(await listed({ search_user_id: "ann,cleo", exclude_method: "delete" })).toEqual([
    "/browsers/3",
    "/browsers/0",
  ]);
  // A whole id, and not a part of one.
  expect(await listed({ search_user_id: "an" })).toEqual([]);
  const { bytes } = await chunkOf({ format: "jsonl", search_user_id: "bob" });
  expect(pathsIn(bytes.toString())).toEqual(["/browsers/1"]);
});

test("more users or methods than may be named, and formats that there are not, are refused", async () => {
  const many = (count: number): string => Array.from({ length: count }, (_, index) => `u${index}`).join(",");
  const statusOf = async (path: string, over: Readonly<Record<string, string>>): Promise<number> =>
    (await send(`${server().url}${path}?${queryOf(over)}`)).status;
  expect(await statusOf("/audit-logs", { search_user_id: many(100) })).toBe(200);
  expect(await statusOf("/audit-logs", { search_user_id: many(101) })).toBe(400);
  expect(await statusOf("/audit-logs/export/chunk", { search_user_id: many(101) })).toBe(400);
  expect(await statusOf("/audit-logs", { exclude_method: many(11) })).toBe(400);
  expect(await statusOf("/audit-logs/export/chunk", { format: "csv" })).toBe(400);
});
