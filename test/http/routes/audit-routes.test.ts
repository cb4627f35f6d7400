import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuditReader } from "../../../src/audit/read-page.js";
import { type AuditBed, newEntry, openAuditBed } from "../../support/audit/audit-bed.js";
import { key, send, sharedServer } from "../../support/http/http-server.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../../support/store/store-bed.js";

let redis: TestRedis;
let stores: StoreBed;
let bed: AuditBed;
const auditLog: AuditReader = { page: (ask) => bed.reader.page(ask), chunk: (ask) => bed.reader.chunk(ask) };
const server = sharedServer({}, { auditLog });
const users = ["ann", "bob", "cleo", "ann"];
beforeAll(async () => {
  redis = await startRedis();
  stores = await openStoreBed(redis, { project: "audit-routes" });
  bed = await openAuditBed(stores);
  await bed.append(
    users.map((userId, index) =>
      newEntry({ userId, path: `/browsers/${index}`, method: index === 2 ? "DELETE" : "GET" }),
    ),
  );
});
afterAll(async () => {
  await bed.close();
  await stores.close();
  await redis.stop();
});

const hourMs = 3_600_000;
const range = {
  start: new Date(Date.now() - hourMs).toISOString(),
  end: new Date(Date.now() + hourMs).toISOString(),
};
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
    .trimEnd()
    .split("\n")
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
