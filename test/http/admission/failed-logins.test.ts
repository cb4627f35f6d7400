import { beforeEach, expect, test } from "vitest";
import { FailedLogins } from "../../../src/access/failed-logins.js";
import type { NewEntry } from "../../../src/audit/entry.js";
import { authenticator, knownKey, tokenOf, unknownKey } from "../../support/access/principals.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { type Got, key, send, sharedServer } from "../../support/http/http-server.js";
import { scrape } from "../../support/http/scrape.js";

const entries: NewEntry[] = [];
beforeEach(() => void (entries.length = 0));
const audit = {
  record: (entry: NewEntry) => void entries.push(entry),
  recordNow: async (entry: NewEntry) => void entries.push(entry),
  async begin() {},
};
const behindProxy = sharedServer(
  { trustedProxies: ["127.0.0.0/8"] },
  { authenticator, audit, failedLogins: new FailedLogins(3, new DrivenClock()) },
);
const alone = sharedServer(
  {},
  { authenticator, audit, failedLogins: new FailedLogins(3, new DrivenClock()) },
);
const byName = sharedServer(
  { publicUrl: "http://remuda.example" },
  { authenticator, failedLogins: new FailedLogins(3, new DrivenClock()) },
);

const ask = (url: string, bearer: string, from: string): Promise<Got> =>
  send(`${url}/auth/context`, {
    headers: { authorization: bearer === "" ? "" : `Bearer ${bearer}`, "x-forwarded-for": from },
  });
const statusOf = async (...asked: Parameters<typeof ask>): Promise<number> => (await ask(...asked)).status;

test("who fails too often from one address waits, and a good credential from there is let in all the same", async () => {
  const { url } = behindProxy();
  const bad = ["garbage", unknownKey(), knownKey({}, "expired"), await tokenOf({ exp: 1 })];
  for (const bearer of bad.slice(1)) expect(await statusOf(url, bearer, "198.51.100.1")).toBe(401);
  for (const bearer of bad) {
    const refused = await ask(url, bearer, "198.51.100.1");
    expect(refused).toMatchObject({ status: 429, body: { code: "rate_limit_exceeded" } });
    expect(Number(refused.headers.get("retry-after"))).toBe(20);
    expect(refused.headers.get("www-authenticate")).toBeNull();
  }
  for (const good of [key, knownKey(), await tokenOf({ roles: "admin" })])
    expect(await statusOf(url, good, "198.51.100.1")).toBe(200);
  expect(await statusOf(url, "garbage", "198.51.100.2")).toBe(401);
  // Who shows nothing has not failed.
  expect(await statusOf(url, "", "198.51.100.1")).toBe(401);
});

test("who is not behind a proxy of ours cannot choose an address", async () => {
  const { url } = alone();
  const statuses = [];
  for (let at = 0; at < 5; at += 1) statuses.push(await statusOf(url, "garbage", `198.51.100.${at}`));
  expect(statuses).toEqual([401, 401, 401, 429, 429]);
});

test("who guesses at the metrics guesses no more often than anywhere else", async () => {
  const statuses = [];
  const statusFor = async (bearer: string) => (await scrape(byName().url, "remuda.example", bearer)).status;
  for (let at = 0; at < 5; at += 1) statuses.push(await statusFor("garbage"));
  expect(statuses).toEqual([401, 401, 401, 429, 429]);
  expect(await statusFor(key)).toBe(200);
});

test("the audit log has the address that a proxy of ours tells, and of nobody else", async () => {
  for (const server of [behindProxy(), alone()]) await ask(server.url, key, "1.1.1.1, 198.51.100.9");
  await expect.poll(() => entries.length).toBe(2);
  expect(entries.map(({ clientIp }) => clientIp)).toEqual(["198.51.100.9", "127.0.0.1"]);
});

test("the audit log has the address of a caller who has hung up", async () => {
  const { url, operations } = alone();
  const begun = new Promise<void>((begin) =>
    operations.answer("pools.acquire", async (_, __, caller) => {
      begin();
      const { gone } = caller as { gone: AbortSignal };
      await new Promise((end) => void gone.addEventListener("abort", end));
      return operations.granted();
    }),
  );
  const hangUp = new AbortController();
  const asked = fetch(`${url}/browser_pools/herd/acquire`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    signal: hangUp.signal,
  }).catch(() => "hung up");
  await begun;
  hangUp.abort();
  await asked;
  await expect.poll(() => entries.map(({ clientIp }) => clientIp)).toEqual(["127.0.0.1"]);
});
