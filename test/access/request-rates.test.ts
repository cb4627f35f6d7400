import { expect, test } from "vitest";
import { sharedAccessBed } from "../support/access/access-bed.js";

const [perMinute, intervalMs] = [6, 10_000];
const bed = sharedAccessBed(2, { limits: { requests_per_minute: perMinute } });

test("bursts of one key at two controls have its rate together, and take nothing from anybody else's", async () => {
  const { key } = await bed.make();
  const from = performance.now();
  const got = await Promise.all(
    Array.from({ length: 16 }, (_, at) => bed.as(key, at % 2).call("GET /auth/context")),
  );
  const tookMs = performance.now() - from;
  const passed = got.filter(({ status }) => status === 200);
  const refused = got.filter(({ status }) => status === 429);
  expect(passed.length + refused.length).toBe(got.length);
  expect(passed.length).toBeGreaterThanOrEqual(perMinute);
  // What comes while they are under way may be taken too.
  expect(passed.length).toBeLessThanOrEqual(perMinute + Math.ceil(tookMs / intervalMs));
  for (const { headers } of got) {
    expect(headers.get("x-ratelimit-limit")).toBe(String(perMinute));
    expect(Number(headers.get("x-ratelimit-remaining"))).toBeLessThan(perMinute);
  }
  for (const { headers, body } of refused) {
    expect(body.code).toBe("rate_limit_exceeded");
    expect(headers.get("x-ratelimit-remaining")).toBe("0");
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(intervalMs / 1000);
  }
  const other = await bed.root.call("GET /auth/context");
  expect([other.status, other.headers.get("x-ratelimit-limit")]).toEqual([200, String(perMinute)]);
  expect((await bed.root.call("GET /healthz")).headers.get("x-ratelimit-limit")).toBeNull();
});
