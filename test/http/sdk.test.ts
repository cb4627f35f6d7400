import Kernel, {
  AuthenticationError,
  BadRequestError,
  ConflictError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from "@onkernel/sdk";
import { expect, test } from "vitest";
import { refusal } from "../../src/base/errors.js";
import { key, sharedServer } from "../support/http/http-server.js";
import { pool, session } from "../support/http/recorded-operations.js";

const server = sharedServer();
const client = () => new Kernel({ apiKey: key, baseURL: server().url });
const operations = () => server().operations.calls.map(({ operation }) => operation);

test("the unmodified official client reaches every operation", async () => {
  const kernel = client();
  const id = session.browser.id;
  expect(await kernel.browserPools.create({ size: 2 })).toMatchObject({ id: pool.id, available_count: 2 });
  expect(await kernel.browserPools.retrieve("herd")).toMatchObject({ name: "herd" });
  expect(await kernel.browserPools.update("herd", { size: 3 })).toMatchObject({ name: "herd" });
  expect(await kernel.browserPools.acquire("herd", { acquire_timeout_seconds: 1 })).toMatchObject({
    session_id: id,
  });
  await kernel.browserPools.release("herd", { session_id: id });
  await kernel.browserPools.flush("herd");
  await kernel.browserPools.delete("herd");
  await kernel.browserPools.delete("herd", { force: true });
  expect(await kernel.browsers.create()).toMatchObject({ session_id: id });
  expect(await kernel.browsers.retrieve(id)).toMatchObject({ session_id: id });
  expect(await kernel.browsers.update(id, { tags: {} })).toMatchObject({ session_id: id });
  await kernel.browsers.deleteByID(id);
  expect(operations()).toEqual([
    "pools.create",
    "pools.get",
    "pools.update",
    "pools.acquire",
    "pools.release",
    "pools.flush",
    "pools.remove",
    "pools.remove",
    "sessions.create",
    "sessions.get",
    "sessions.update",
    "sessions.remove",
  ]);
});

test("it walks through all pages of a list", async () => {
  const pages = [
    { items: [pool, pool], hasMore: true, nextOffset: 2 },
    { items: [pool], hasMore: false, nextOffset: 3 },
  ];
  server().operations.answer("pools.list", ((query: { offset: number }) => pages[query.offset / 2]) as never);
  const names: (string | undefined)[] = [];
  for await (const item of client().browserPools.list({ limit: 2 })) names.push(item.name);
  expect(names).toEqual(["herd", "herd", "herd"]);
});

test("it encodes tags as the list reads them", async () => {
  await client().browsers.list({ tags: { team: "a b", "x.y": "1" } });
  expect(server().operations.calls[0]?.args[0]).toMatchObject({ tags: { team: "a b", "x.y": "1" } });
});

test("it gives null for a wait that has ended", async () => {
  server().operations.answer("pools.acquire", { kind: "timed-out" });
  expect(await client().browserPools.acquire("herd", {})).toBeNull();
});

test("it maps refusals to its classes and repeats only those that may pass", async () => {
  const answers = [
    ["bad_request", BadRequestError, 1],
    ["pool_not_found", NotFoundError, 1],
    ["name_taken", ConflictError, 1],
    ["limit_exceeded", PermissionDeniedError, 1],
    ["conflict", ConflictError, 2],
    ["too_many_waiters", RateLimitError, 2],
    ["launch_failed", InternalServerError, 2],
    ["capacity_exhausted", InternalServerError, 2],
  ] as const;
  const once = new Kernel({ apiKey: key, baseURL: server().url, maxRetries: 1 });
  for (const [code, type, times] of answers) {
    server().operations.reset();
    server().operations.answer("pools.create", refusal(code));
    const error = await once.browserPools.create({ size: 1 }).catch((thrown: unknown) => thrown);
    expect(error, code).toBeInstanceOf(type);
    expect(error).toMatchObject({ error: { code } });
    expect(operations(), code).toHaveLength(times);
  }
  const wrong = new Kernel({ apiKey: "wrong", baseURL: server().url });
  await expect(wrong.browserPools.retrieve("herd")).rejects.toBeInstanceOf(AuthenticationError);
});
