import { afterEach, beforeEach, expect, test } from "vitest";
import { type FillSite, openFillSite } from "../../support/browser/fill/fill-bed.js";
import { until } from "../../support/browser/chromium-until.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { openRedisProxy, type RedisProxy } from "../../support/store/redis-proxy.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { openNewRelyingParty } from "../../support/vault/relying-party.js";
import { openVaultSession, type VaultSession } from "../../support/vault/vault-session.js";

const path = "/vaults/logins/items/site";

/** A control, and a node whose way to Redis can be frozen. */
let redis: TestRedis;
let proxy: RedisProxy;
let site: FillSite;
let control: DaemonProcess;
let node: DaemonProcess;
beforeEach(async () => {
  redis = await startRedis();
  proxy = await openRedisProxy(redis.url);
  site = await openFillSite();
  site.serve({ body: "sign up" });
  control = await spawnDaemon(new DaemonPlace({ role: "control", redisUrl: redis.url }));
  node = await spawnDaemon(new DaemonPlace({ role: "node", redisUrl: proxy.url }));
  await control.call("POST /vaults", { name: "logins" });
  const fields = [{ name: "key", type: "passkey", required: false }];
  await control.call(`PUT ${path}`, { type: "credential", spec: { provider: "native", fields } });
});
afterEach(async () => {
  for (const daemon of [node, control]) await daemon.stop();
  // A stop waits for the last try.
  expect(node.log).not.toContain('"passkey of a page not kept"');
  await site.close();
  await proxy.close();
  await redis.stop();
});

const opened = (): Promise<VaultSession> => openVaultSession(control, `${site.other}/`);
const ask = async (type: string, { id }: Pick<VaultSession, "id">): Promise<number> =>
  (await control.call(`POST ${path}/operations`, { type, browser_id: id })).status;

/** Redis stands still before the page makes its passkey. */
async function frozenBefore(make: () => Promise<void>): Promise<void> {
  redis.signal("SIGSTOP");
  await make();
}

/** Redis stands still when the passkey is written: the write arrives, and no answer comes to it. */
async function frozenAmid(make: () => Promise<void>): Promise<void> {
  const reached = proxy.freezeAt("credential.passkey_registered");
  await make();
  await reached;
  redis.signal("SIGSTOP");
  thawed = proxy.thaw();
}
let thawed: Promise<void> | undefined;

test.each([
  ["before it is written", frozenBefore],
  ["amid its write", frozenAmid],
])("a passkey that a page has made while Redis stood still, %s, is kept once", async (_, frozen) => {
  const [one, two] = [await opened(), await opened()];
  const party = openNewRelyingParty(site.other);
  expect(await ask("register_passkey", one)).toBe(200);
  await frozen(() => party.register(one.page));
  await until("given up for now", async () => node.log.includes("passkey of a page not kept"));
  redis.signal("SIGCONT");
  await thawed;
  const kept = await until("it is kept", async () => {
    const { status, body } = await control.call(`GET ${path}`);
    return status === 200 && body.version > 1 ? body : undefined;
  });
  expect(kept).toMatchObject({ version: 2, state: { fields: { key: { has_value: true } } } });
  const events = (await control.call(`GET ${path}/events`)).body as { name: string }[];
  expect(events.map(({ name }) => name)).toEqual(["credential.created", "credential.passkey_registered"]);
  expect(await party.signIn(one.page)).toBe(true);
  await one.close();
  expect(await until("armed", async () => (await ask("arm_passkey", two)) === 200)).toBe(true);
  expect(await party.signIn(two.page)).toBe(true);
  await two.close();
});
