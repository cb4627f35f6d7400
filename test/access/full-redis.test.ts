import { expect, test } from "vitest";
import { sharedAccessBed } from "../support/access/access-bed.js";

const bed = sharedAccessBed();

test("a Redis that is full lets keys in whose use it cannot note, and nothing is noted", async () => {
  const { id, key } = await bed.make();
  await bed.redis.config("SET", "maxmemory-policy", "noeviction");
  await bed.redis.config("SET", "maxmemory", "1");
  const context = await bed.as(key).call("GET /auth/context");
  await bed.redis.config("SET", "maxmemory", "0");
  expect(context.status, context.text).toBe(200);
  const read = `GET /org/api_keys/${id}`;
  expect((await bed.root.call(read)).headers.has("x-remuda-last-used-at")).toBe(false);
  await bed.as(key).call("GET /auth/context");
  expect((await bed.root.call(read)).headers.has("x-remuda-last-used-at")).toBe(true);
});
