import type { Page } from "playwright-core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type FillSite, openFillSite } from "../../support/browser/fill/fill-bed.js";
import { until } from "../../support/browser/chromium-until.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import type { Got } from "../../support/http/http-server.js";
import { openRedisProxy, type RedisProxy } from "../../support/store/redis-proxy.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { impatientMs, openRelyingParty, type RelyingParty } from "../../support/vault/relying-party.js";
import { openVaultSession, type VaultSession } from "../../support/vault/vault-session.js";

const path = "/vaults/logins/items/site";

/** A control whose way to Redis can be frozen, one beside it, and a node. */
let redis: TestRedis;
let proxy: RedisProxy;
let site: FillSite;
let party: RelyingParty;
let frozen: DaemonProcess;
let other: DaemonProcess;
let node: DaemonProcess;
const start = (role: "control" | "node", redisUrl = redis.url): Promise<DaemonProcess> =>
  spawnDaemon(new DaemonPlace({ role, redisUrl }));
beforeEach(async () => {
  redis = await startRedis();
  proxy = await openRedisProxy(redis.url);
  site = await openFillSite();
  site.serve({ body: "sign in" });
  party = openRelyingParty(site.other);
  [frozen, other] = await Promise.all([start("control", proxy.url), start("control")]);
  node = await start("node");
  await other.call("POST /vaults", { name: "logins" });
  const fields = [{ name: "key", type: "passkey", value: JSON.stringify(party.passkey) }];
  await other.call(`PUT ${path}`, { type: "credential", spec: { provider: "native", fields } });
});
afterEach(async () => {
  for (const daemon of [node, other, frozen]) await daemon.stop();
  await site.close();
  await proxy.close();
  await redis.stop();
});

const opened = (): Promise<VaultSession> => openVaultSession(other, `${site.other}/`);
async function signIn(page: Page, limitMs?: number): Promise<boolean | string> {
  const { script, verify } = await party.challenge(limitMs);
  const answer = String(await page.evaluate(script));
  return answer.startsWith("{") ? await verify(answer) : answer;
}
const operate = (daemon: DaemonProcess, body: object): Promise<Got> =>
  daemon.call(`POST ${path}/operations`, body);
const arm = (daemon: DaemonProcess, id: string): Promise<Got> =>
  operate(daemon, { type: "arm_passkey", browser_id: id });
const disarm = (daemon: DaemonProcess): Promise<Got> => operate(daemon, { type: "disarm_passkey" });
/** Not all connections of a daemon are back at once. */
const answered = (what: string, ask: () => Promise<Got>): Promise<Got> =>
  until(what, async () => {
    const got = await ask();
    if (got.status !== 503) return got;
    expect(got.body.code).toBe("store_unavailable");
    return undefined;
  });
const eventsOf = async (): Promise<readonly string[]> =>
  ((await other.call(`GET ${path}/events`)).body as { name: string }[]).map(({ name }) => name);

/** It rises by 10,000 at each arming, and also at one that was answered 503 before a connection was back. */
function expectMovedOn(): void {
  expect(party.counter).toBeGreaterThan(10_000);
  expect(party.counter % 10_000).toBe(1);
}

/**
 * Redis stands still while the control writes that; the write arrives before Redis goes on, and so it is
 * made.
 */
async function frozenAt(text: string, ask: () => Promise<Got>): Promise<Got> {
  const reached = proxy.freezeAt(text);
  const asking = ask();
  await reached;
  redis.signal("SIGSTOP");
  const thawed = proxy.thaw();
  const got = await asking;
  redis.signal("SIGCONT");
  await thawed;
  return got;
}

test("Redis frozen before a passkey is armed: no page has it, the item says what was done, and it can be armed and taken away", async () => {
  const [one, two] = [await opened(), await opened()];
  const got = await frozenAt("credential.passkey_armed", () => arm(frozen, one.id));
  expect(got.status, got.text).toBe(503);
  expect(got.text).not.toContain(party.passkey["key"]);
  const item = await answered("Redis back", () => other.call(`GET ${path}`));
  // It is noted for the first browser, which has it not: nobody else may have it until that is taken back.
  expect(item.body).toMatchObject({ version: 2, state: { status: "ready" } });
  expect(await eventsOf()).toEqual(["credential.created", "credential.passkey_armed"]);
  expect(await signIn(one.page, impatientMs)).not.toBe(true);
  const taken = await answered("refused", () => arm(other, two.id));
  expect(taken).toMatchObject({ status: 409, body: { code: "conflict" } });
  const disarmed = await answered("disarmed", () => disarm(other));
  expect(disarmed).toMatchObject({ status: 200, body: { version: 3 } });
  expect(await answered("armed", () => arm(frozen, two.id))).toMatchObject({ status: 200 });
  expect(await signIn(two.page)).toBe(true);
  // Each arming has moved the counter on, also the one that reached no browser.
  expectMovedOn();
  await one.close();
  await two.close();
});

test("Redis frozen before it is noted that a passkey was taken away: no page has it any more, and the item says so once Redis goes on", async () => {
  const [one, two] = [await opened(), await opened()];
  expect((await arm(other, one.id)).status).toBe(200);
  expect(await signIn(one.page)).toBe(true);
  const got = await frozenAt("credential.passkey_disarmed", () => disarm(frozen));
  expect(got.status, got.text).toBe(503);
  expect(await signIn(one.page, impatientMs)).not.toBe(true);
  const item = await answered("Redis back", () => other.call(`GET ${path}`));
  expect(item.body).toMatchObject({ version: 3 });
  expect((await eventsOf()).at(-1)).toBe("credential.passkey_disarmed");
  expect(await answered("armed", () => arm(other, two.id))).toMatchObject({ status: 200 });
  expect(await signIn(two.page)).toBe(true);
  expectMovedOn();
  await one.close();
  await two.close();
});

test("Redis frozen while a passkey is armed: it stays with the pages that have it, and is taken away once Redis goes on", async () => {
  const { id, page, close } = await opened();
  expect((await arm(other, id)).status).toBe(200);
  redis.signal("SIGSTOP");
  expect(await signIn(page)).toBe(true);
  expect((await disarm(other)).status).toBe(503);
  redis.signal("SIGCONT");
  const taken = await answered("taken away", () => disarm(other));
  expect(taken).toMatchObject({ status: 200, body: { version: 3 } });
  expect(await signIn(page, impatientMs)).not.toBe(true);
  await close();
});
