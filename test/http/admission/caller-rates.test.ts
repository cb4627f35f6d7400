import { expect, test } from "vitest";
import { makeAuthenticator } from "../../../src/access/authenticator.js";
import type { ApiKey } from "../../../src/access/api-key.js";
import type { Rate, RateLimiter } from "../../../src/access/rate-limiter.js";
import { keyDigestOf, makeKeyText } from "../../../src/base/crypto/key-text.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { newApiKeyId } from "../../../src/base/ids.js";
import { type Got, key, rootPerson, send, sharedServer } from "../../support/http/http-server.js";
import { scrape } from "../../support/http/scrape.js";

let left = 0;
/** How often the store was asked. */
let asked = 0;
/** Callers have so many left as a test says; launches have two fewer. */
const take = (): Rate => {
  left -= 1;
  return left < 0
    ? { perMinute: 60, remaining: 0, retryAfterMs: 30_400 }
    : { perMinute: 60, remaining: left };
};
const apiKey = makeKeyText(new Secret("the secret of this suite"), "one");
const record: ApiKey = {
  id: newApiKeyId(),
  name: "one",
  digest: keyDigestOf(apiKey.reveal()),
  mask: "rmd_...",
  createdAt: 1,
  createdBy: rootPerson,
};
const kindOf = ({ retryAfterMs }: Rate) => (retryAfterMs === undefined ? "admitted" : "limited");
const authenticator = makeAuthenticator({
  rootKey: new Secret(key),
  rootPerson,
  keys: {
    async admit(digest, _project, isUncounted = false) {
      asked += 1;
      if (digest !== record.digest) return { kind: "unknown" };
      if (isUncounted) return { kind: "admitted", key: record };
      const rate = take();
      return { kind: kindOf(rate), key: record, rate };
    },
    recall: () => undefined,
  },
  callers: {
    isLimited: true,
    async admit() {
      asked += 1;
      const rate = take();
      return { kind: kindOf(rate), rate };
    },
  },
  hasProjects: false,
});
const creations: RateLimiter = { take: async () => ({ perMinute: 9, remaining: 7 }) };
const server = sharedServer({ publicUrl: "http://remuda.example" }, { authenticator, creations });

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

test("a scrape is taken out of nobody's rate and held up by none, and with the root key the store is not asked", async () => {
  [left, asked] = [0, 0];
  for (const [bearer, lookUps] of [
    [key, 0],
    [apiKey.reveal(), 1],
  ] as const) {
    expect((await get("/auth/context", { authorization: `Bearer ${bearer}` }))[0]).toBe(429);
    [left, asked] = [0, 0];
    const { status, headers } = await scrape(server().url, "remuda.example", bearer);
    expect([status, headers["x-ratelimit-limit"], left, asked]).toEqual([200, undefined, 0, lookUps]);
  }
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
