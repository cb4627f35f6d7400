import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newRequestId } from "../../../src/base/ids.js";
import type { ShownItem } from "../../../src/vault/shown-item.js";
import type { Vault } from "../../../src/vault/vault.js";
import { openFormBed } from "../../support/form/form-bed.js";
import { type FormPage, heading, openFormBrowser, openFormPage, save } from "../../support/form/form-page.js";
import {
  runOutLink,
  secondControl,
  sharedVaultBed,
  tokenIn,
  valueOf,
} from "../../support/vault/vault-bed.js";

const bed = sharedVaultBed();
let second: Awaited<ReturnType<typeof secondControl>>;
let servers: Awaited<ReturnType<typeof openFormBed>>[] = [];
let browser: Browser;
beforeAll(async () => {
  second = await secondControl(bed());
  const each = [bed(), second].map(({ forms }) => openFormBed({}, { forms }));
  [servers, browser] = await Promise.all([Promise.all(each), openFormBrowser()]);
});
afterAll(async () => {
  await browser.close();
  for (const server of servers) await server.close();
  await second.close();
});

const fields = [
  { name: "user", type: "text", sensitive: false },
  { name: "password", type: "password" },
] as const;

/** Ten tabs of one link, half of them at each control, with something else entered in each. */
async function tabsOf(item: ShownItem): Promise<readonly FormPage[]> {
  const tabs = Array.from({ length: 10 }, async (_, at) => {
    const tab = await openFormPage(browser);
    await tab.page.goto(`${servers[at % 2]?.url}/#token=${tokenIn(item)}`);
    await tab.page.getByLabel("user", { exact: true }).fill(`user-${at}`);
    await tab.page.getByLabel("password", { exact: true }).fill(`secret-${at}`);
    return tab;
  });
  return await Promise.all(tabs);
}
const shown = async (tab: FormPage): Promise<string> => {
  const names = ["Saved", "This link has been used", "This link has been replaced", "This link has expired"];
  return await Promise.any(names.map((name) => heading(tab, name).then(() => name)));
};
async function close(tabs: readonly FormPage[]): Promise<void> {
  for (const { page } of tabs) await page.context().close();
}
const read = async ({ id }: Vault, control: Pick<typeof second, "items"> = bed()): Promise<ShownItem> =>
  valueOf(await control.items.get(id, "shop", {}));
const userOf = ({ fields: shownFields }: ShownItem): string | undefined =>
  shownFields.find(({ name }) => name === "user")?.value;

test("of ten tabs that are sent at once one is saved, and each of the others is told that the link was used", async () => {
  const vault = await bed().vault();
  const item = await bed().put(vault, fields);
  const tabs = await tabsOf(item);
  const seen = await Promise.all(tabs.map((tab) => save(tab).then(() => shown(tab))));
  const saved = seen.flatMap((name, at) => (name === "Saved" ? [at] : []));
  expect(saved).toHaveLength(1);
  expect(seen.filter((name) => name === "This link has been used")).toHaveLength(9);
  const after = await read(vault, second);
  expect(after.item.version).toBe(2);
  expect(userOf(after)).toBe(`user-${saved[0]}`);
  await close(tabs);
});

test("ten tabs whose link has run out are told so, save nothing, and all who read meanwhile get one other link", async () => {
  const vault = await bed().vault();
  const item = await bed().put(vault, fields);
  const tabs = await tabsOf(item);
  await runOutLink(bed(), vault, item);
  const reads = Array.from({ length: 10 }, (_, at) => read(vault, at % 2 ? bed() : second));
  const seen = Promise.all(tabs.map((tab) => save(tab).then(() => shown(tab))));
  const renewed = new Set((await Promise.all(reads)).map(tokenIn));
  expect(renewed.size).toBe(1);
  expect(renewed.has(tokenIn(item))).toBe(false);
  expect(new Set(await seen)).toEqual(new Set(["This link has expired"]));
  const after = await read(vault);
  expect([after.item.version, tokenIn(after)]).toEqual([1, [...renewed][0]]);
  await close(tabs);
});

test("of ten tabs and a change over the API that race one is made, and the others are told that", async () => {
  for (let round = 0; round < 3; round += 1) {
    const vault = await bed().vault();
    const item = await bed().put(vault, fields);
    const tabs = await tabsOf(item);
    const body = { type: "credential", version: 1, spec: { description: "Shop" } } as const;
    const sending = Promise.all(tabs.map((tab) => save(tab).then(() => shown(tab))));
    // In the midst of them.
    if (round > 0) await Promise.race(tabs.map(({ page }) => page.waitForRequest("**/submit")));
    const patched = await second.items.update(vault.id, "shop", { body, request: newRequestId() });
    const seen = await sending;
    const isPatched = patched.kind === "done";
    expect(seen.filter((name) => name === "Saved")).toHaveLength(isPatched ? 0 : 1);
    expect(seen.filter((name) => name === "This link has been replaced")).toHaveLength(isPatched ? 10 : 0);
    if (!isPatched) expect(patched).toMatchObject({ code: "stale_version" });
    const after = await read(vault);
    expect([after.item.version, after.item.spec.description]).toEqual([2, isPatched ? "Shop" : ""]);
    expect(tokenIn(after) === "").toBe(!isPatched);
    await close(tabs);
  }
});
