import { expect, test } from "vitest";
import { makeAuthenticator } from "../../src/access/authenticator.js";
import type { RateLimiter } from "../../src/access/rate-limiter.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { type Got, key, rootPerson, send, sharedServer } from "../support/http/http-server.js";

let left = 0;
/** The root key has so many left as a test says; launches have two fewer. */
const authenticator = makeAuthenticator({
  rootKey: new Secret(key),
  rootPerson,
  keys: { admit: async () => ({ kind: "unknown" }), recall: () => undefined },
  callers: {
    isLimited: true,
    async admit() {
      left -= 1;
      if (left < 0) return { kind: "limited", rate: { perMinute: 60, remaining: 0, retryAfterMs: 30_400 } };
      return { kind: "admitted", rate: { perMinute: 60, remaining: left } };
    },
  },
  hasProjects: false,
});
const creations: RateLimiter = { take: async () => ({ perMinute: 9, remaining: 7 }) };
const server = sharedServer({}, { authenticator, creations });

const told = ({ status, headers }: Got) => [
  status,
  ...["x-ratelimit-limit", "x-ratelimit-remaining"].map((name) => headers.get(name)),
];
const get = (path: string, headers: Record<string, string> = {}) =>
  send(server().url + path, { headers }).then(told);

test("every answer to a caller with a rate tells it, whatever is answered", async () => {
  left = 60;
  expect(await get("/auth/context")).toEqual([200, "60", "59"]);
  expect(await get("/browsers?limit=x")).toEqual([400, "60", "58"]);
  expect(await get("/browsers", { "x-kernel-project-id": "aaaaaaaaaaaa" })).toEqual([404, "60", "57"]);
  expect(await get("/browsers", { authorization: "Bearer nobody's" })).toEqual([401, null, null]);
  expect(await get("/healthz")).toEqual([200, null, null]);
});

test("of two rates that of which less is left is told", async () => {
  const post = () => send(`${server().url}/browsers`, { method: "POST", body: {} }).then(told);
  left = 60;
  expect(await post()).toEqual([200, "9", "7"]);
  left = 7;
  expect(await post()).toEqual([200, "60", "6"]);
});

test("a caller of whose rate nothing is left is told when to come again, and nothing is done", async () => {
  left = 0;
  const got = await send(`${server().url}/browser_pools`, { method: "POST", body: { size: 1 } });
  expect(got).toMatchObject({ status: 429, body: { code: "rate_limit_exceeded" } });
  expect(told(got)).toEqual([429, "60", "0"]);
  expect(got.headers.get("retry-after")).toBe("31");
  expect(Number(got.headers.get("retry-after-ms"))).toBeGreaterThanOrEqual(30_400);
  expect(Number(got.headers.get("retry-after-ms"))).toBeLessThanOrEqual(60_800);
  expect(server().operations.calls).toEqual([]);
});
