import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type FillSite, openFillSite } from "../../support/browser/fill/fill-bed.js";
import { type Daemon, startDaemon } from "../../support/daemon/daemon.js";
import {
  openNewRelyingParty,
  openRelyingParty,
  type RelyingParty,
} from "../../support/vault/relying-party.js";
import { openVaultSession } from "../../support/vault/vault-session.js";

const path = "/vaults/logins/items/site";
let daemon: Daemon;
let site: FillSite;
let party: RelyingParty;
beforeAll(async () => {
  site = await openFillSite();
  party = openRelyingParty(site.other);
  site.serve({ body: "sign in" });
  daemon = await startDaemon();
  await daemon.call("POST /vaults", { name: "logins" });
  const fields = [{ name: "key", type: "passkey", value: JSON.stringify(party.passkey) }];
  expect(
    await daemon.call(`PUT ${path}`, { type: "credential", spec: { provider: "native", fields } }),
  ).toMatchObject({
    status: 200,
    body: { available_operations: [{ type: "arm_passkey" }, { type: "disarm_passkey" }] },
  });
}, 120_000);
afterAll(async () => {
  await daemon.stop();
  await site.close();
});

const opened = (body: object = {}) => openVaultSession(daemon, `${site.other}/`, body);
const operate = (body: object) => daemon.call(`POST ${path}/operations`, body);
const arm = (id: string) => operate({ type: "arm_passkey", browser_id: id });

async function signIn(page: Page): Promise<boolean | string> {
  const { script, verify } = await party.challenge();
  const answer = String(await page.evaluate(script));
  return answer.startsWith("{") ? await verify(answer) : answer;
}

test("pages of a browser sign in with a vault's passkey while it is armed; the counter never goes back", async () => {
  const { id, page, close } = await opened();
  const armed = await arm(id);
  expect(armed).toMatchObject({ status: 200, body: { key: "site", version: 2 } });
  expect(armed.text).not.toContain(party.passkey["key"]);
  expect(await signIn(page)).toBe(true);
  expect(await signIn(page)).toBe(true);
  const other = await page.context().newPage();
  await other.goto(`${site.other}/`);
  expect(await signIn(other)).toBe(true);
  expect(party.counter).toBe(3);
  const client = await page.context().newCDPSession(page);
  await expect(client.send("WebAuthn.enable")).rejects.toThrow("while a passkey of a vault is armed");
  // Chromium would take it from the page with any session that ends.
  await client.detach();
  expect(await signIn(page)).toBe(true);
  expect(await operate({ type: "disarm_passkey" })).toMatchObject({ status: 200, body: { version: 3 } });
  // A headless browser that has none says so at once; one that had it still would sign in, however late.
  expect(await signIn(page)).toBe("NotSupportedError");
  const before = party.counter;
  expect((await arm(id)).status).toBe(200);
  expect(await signIn(page)).toBe(true);
  expect(party.counter).toBeGreaterThan(before);
  await close();
});

test("one browser has it at a time; the next may have it once the first is released or disarmed", async () => {
  const [one, two] = [await opened(), await opened()];
  expect((await arm(one.id)).status).toBe(200);
  expect(await arm(two.id)).toMatchObject({ status: 409, body: { code: "conflict" } });
  await one.close();
  expect((await arm(two.id)).status).toBe(200);
  expect(await signIn(two.page)).toBe(true);
  await two.close();
});

test("a browser has one passkey at a time: another item's neither takes its place nor takes it away", async () => {
  const second = "/vaults/logins/items/second";
  const { passkey } = openRelyingParty(site.other);
  const fields = [
    { name: "key", type: "passkey", value: JSON.stringify(passkey) },
    { name: "empty", type: "passkey", required: false },
  ];
  await daemon.call(`PUT ${second}`, { type: "credential", spec: { provider: "native", fields } });
  const ofSecond = (type: string, body: object = {}) =>
    daemon.call(`POST ${second}/operations`, { type, ...body });
  const { id, page, close } = await opened();
  expect((await arm(id)).status).toBe(200);
  for (const type of ["arm_passkey", "register_passkey"])
    expect(await ofSecond(type, { browser_id: id })).toMatchObject({
      status: 409,
      body: { code: "conflict", message: "The browser has another passkey" },
    });
  expect(await ofSecond("disarm_passkey")).toMatchObject({ status: 200 });
  expect(await signIn(page)).toBe(true);
  // It is the browser's still, and so no other value takes its place.
  const { body: item } = await daemon.call(`GET ${path}`);
  const spec = { fields: { key: { value: JSON.stringify(passkey) } } };
  expect(
    await daemon.call(`PATCH ${path}`, { type: "credential", version: item.version, spec }),
  ).toMatchObject({ status: 409, body: { code: "conflict" } });
  expect(await operate({ type: "disarm_passkey" })).toMatchObject({ status: 200 });
  expect(await ofSecond("arm_passkey", { browser_id: id })).toMatchObject({ status: 200 });
  expect(await operate({ type: "disarm_passkey" })).toMatchObject({ status: 200 });
  expect(await arm(id)).toMatchObject({ status: 409 });
  expect(await ofSecond("disarm_passkey")).toMatchObject({ status: 200 });
  // A page that was to make one may go.
  const empty = { browser_id: id, field: "empty" };
  expect(await ofSecond("register_passkey", empty)).toMatchObject({ status: 200 });
  expect(await arm(id)).toMatchObject({ status: 409 });
  expect(await ofSecond("disarm_passkey", { browser_id: "no-such-browser" })).toMatchObject({ status: 404 });
  expect(await ofSecond("disarm_passkey", { browser_id: id })).toMatchObject({ status: 200 });
  expect(await ofSecond("arm_passkey", { browser_id: id, field: "key" })).toMatchObject({ status: 200 });
  // What is deleted is taken from the browser that has it.
  expect(await daemon.call(`DELETE ${second}`)).toMatchObject({ status: 204 });
  expect(await arm(id)).toMatchObject({ status: 200 });
  expect(await signIn(page)).toBe(true);
  await close();
});

test("a session without the vault, and what is no session, has no passkey", async () => {
  const { id, close } = await opened({ vaults: [] });
  expect(await arm(id)).toMatchObject({ status: 409, body: { code: "vault_not_attached" } });
  await close();
  expect(await arm(id)).toMatchObject({ status: 404 });
  expect(await operate({ type: "arm_passkey" })).toMatchObject({ status: 400 });
});

test("the first passkey that a page makes is kept in the item, and signs in there and in another browser", async () => {
  const at = "/vaults/logins/items/new";
  const fields = [{ name: "key", type: "passkey", required: false }];
  await daemon.call(`PUT ${at}`, { type: "credential", spec: { provider: "native", fields } });
  const ask = (type: string, id: string) => daemon.call(`POST ${at}/operations`, { type, browser_id: id });
  const [one, two] = [await opened(), await opened()];
  expect(await ask("register_passkey", one.id)).toMatchObject({ status: 200, body: { version: 1 } });

  const newParty = openNewRelyingParty(site.other);
  await newParty.register(one.page);
  const kept = await until("it is kept", async () => {
    const { body } = await daemon.call(`GET ${at}`);
    return (
      (body as { state: { fields: { key: { has_value: boolean } } } }).state.fields.key.has_value && body
    );
  });
  expect(kept).toMatchObject({
    version: 2,
    available_operations: [{ type: "arm_passkey" }, { type: "disarm_passkey" }],
  });

  expect(await newParty.signIn(one.page)).toBe(true);
  expect(await newParty.signIn(one.page)).toBe(true);
  // The first goes on having it, and no other has it beside that one.
  expect(await ask("arm_passkey", two.id)).toMatchObject({ status: 409, body: { code: "conflict" } });
  await one.close();
  expect(await ask("arm_passkey", two.id)).toMatchObject({ status: 200 });
  expect(await newParty.signIn(two.page)).toBe(true);
  await two.close();
});
