import { afterEach, beforeEach, expect, test } from "vitest";
import { processesOf } from "../../support/browser/browser-processes.js";
import { type FillSite, openFillSite } from "../../support/browser/fill/fill-bed.js";
import { until } from "../../support/browser/chromium-until.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { signalLiving } from "../../support/living.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { openRelyingParty, type RelyingParty } from "../../support/vault/relying-party.js";
import { openVaultSession, type VaultSession } from "../../support/vault/vault-session.js";

const path = "/vaults/logins/items/site";
let redis: TestRedis;
let site: FillSite;
let party: RelyingParty;
let running: DaemonProcess[] = [];

async function start(role: "control" | "node", place = new DaemonPlace({ role, redisUrl: redis.url })) {
  const daemon = await spawnDaemon(place);
  running.push(daemon);
  return daemon;
}

beforeEach(async () => {
  running = [];
  redis = await startRedis();
  site = await openFillSite();
  site.serve({ body: "sign in" });
  party = openRelyingParty(site.other);
});
afterEach(async () => {
  for (const daemon of running.toReversed()) await daemon.stop();
  await site.close();
  await redis.stop();
});

const opened = (control: DaemonProcess): Promise<VaultSession> => openVaultSession(control, `${site.other}/`);

test("a node killed amid the arming of a passkey: its counter was moved on, it is whole, and another browser may have it", async () => {
  const control = await start("control");
  const node = await start("node");
  await control.call("POST /vaults", { name: "logins" });
  const fields = [{ name: "key", type: "passkey", value: JSON.stringify(party.passkey) }];
  await control.call(`PUT ${path}`, { type: "credential", spec: { provider: "native", fields } });
  const arm = (id: string) =>
    control.call(`POST ${path}/operations`, { type: "arm_passkey", browser_id: id });
  const first = await opened(control);
  // Its Chromium answers nothing, so that the arming has begun and does not end.
  const { main = 0 } = await processesOf(node.place.scratchDirectory, first.id);
  expect(main).toBeGreaterThan(0);
  process.kill(main, "SIGSTOP");
  const arming = arm(first.id);
  await until("the counter moved on", async () => (await control.call(`GET ${path}`)).body.version === 2);
  running = running.filter((each) => each !== node);
  node.signal("SIGKILL");
  // It holds what the node's log goes to, and cannot end by itself while it stands still. Its namespace may
  // have ended it with the node just now.
  signalLiving(main, "SIGKILL");
  await node.ended();
  const armed = await arming;
  expect(armed.status, armed.text).toBeGreaterThanOrEqual(409);
  expect(armed.text).not.toContain(party.passkey["key"]);
  await first.close().catch(() => {});

  await start("node", node.place);
  const second = await opened(control);
  const again = await arm(second.id);
  expect(again, again.text).toMatchObject({ status: 200, body: { state: { status: "ready" } } });
  const { script, verify } = await party.challenge();
  expect(await verify(String(await second.page.evaluate(script)))).toBe(true);
  // Both armings have moved it on, though the first browser never had it.
  expect(party.counter).toBeGreaterThan(10_000);
  expect(party.counter).toBeLessThan(20_000);
  await second.close();
});
