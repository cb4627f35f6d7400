import { expect, test } from "vitest";
import { done, refusal } from "../../src/base/errors.js";
import { newRequestId, type BrowserId, type LeaseId } from "../../src/base/ids.js";
import { mostSignCount } from "../../src/vault/credentials/field-values.js";
import type { PasskeyOrder } from "../../src/vault/fill.js";
import type { Vault } from "../../src/vault/vault.js";
import { openRelyingParty } from "../support/vault/relying-party.js";
import { sharedVaultBed, valueOf } from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
const { passkey } = openRelyingParty("https://site.example");
const browser = "browser-1";

/** A vault with an item of this passkey, and a session that has the vault. */
async function imported(fields: object): Promise<Vault> {
  const vault = await bed().vault();
  const value = JSON.stringify({ ...passkey, ...fields });
  await bed().put(vault, [{ name: "key", type: "passkey", value }], "site");
  const session = {
    browser: browser as BrowserId,
    lease: "lease-1" as LeaseId,
    vaults: [vault.id],
    isProtected: false,
  };
  bed().sessions.set(browser, session);
  return vault;
}
const operate = (vault: Vault, type: "arm_passkey" | "disarm_passkey") => {
  const body = type === "arm_passkey" ? { type, browser_id: browser } : { type };
  return bed().items.operate(vault.id, "site", { body, request: newRequestId() });
};

test.each([
  ["somewhere for ever", { browser: "elsewhere", until: 2 ** 50 }],
  ["in this browser", { browser, lease: "lease-1", until: 2 ** 50, from: 7 }],
])("a passkey that says of itself that it is armed %s is armed nowhere", async (_, armed) => {
  const vault = await imported({ armed });
  expect(await operate(vault, "disarm_passkey")).toMatchObject({
    kind: "done",
    value: { item: { item: { version: 1 } } },
  });
  expect(await operate(vault, "arm_passkey")).toMatchObject({ kind: "done" });
  expect(await operate(vault, "disarm_passkey")).toMatchObject({ kind: "done" });
});

test("a counter is moved on as far as Chromium takes it; after that the passkey is armed no more, and stays whole", async () => {
  const vault = await imported({ signCount: mostSignCount - 1000 });
  expect(await operate(vault, "arm_passkey")).toMatchObject({ kind: "done" });
  expect(await operate(vault, "disarm_passkey")).toMatchObject({ kind: "done" });
  const over = { kind: "refused", code: "conflict", message: "The passkey's counter has come to its end" };
  expect(await operate(vault, "arm_passkey")).toMatchObject(over);
  expect(valueOf(await bed().items.get(vault.id, "site", {})).item.version).toBe(3);
});

test("a counter that Chromium takes from nobody is 400", async () => {
  await expect(imported({ signCount: mostSignCount + 1 })).rejects.toThrow("a counter up to 2147483647");
});

test.each(["conflict", "browser_gone", "browser_not_found"] as const)(
  "a passkey that a node has refused with %s may be armed elsewhere at once, with its counter moved on",
  async (code) => {
    const vault = await imported({ signCount: 5 });
    const other = "browser-2" as BrowserId;
    const { browser: first, ...session } = bed().sessions.get(browser) ?? never();
    bed().sessions.set(other, { ...session, browser: other, lease: "lease-2" as LeaseId });
    const orders: PasskeyOrder[] = [];
    const { items } = bed().with({
      fill: {
        isSupported: true,
        fill: never,
        async passkey(order) {
          orders.push(order);
          return order.browser === first ? refusal(code) : done(null);
        },
      },
    });
    const arm = (id: string) =>
      items.operate(vault.id, "site", {
        body: { type: "arm_passkey", browser_id: id },
        request: newRequestId(),
      });
    expect(await arm(browser)).toMatchObject({ kind: "refused", code });
    expect(await arm(other)).toMatchObject({ kind: "done" });
    expect(orders.map(({ browser: of, version }) => [of, version])).toEqual([
      [first, 2],
      [other, 4],
    ]);
    // It is the other's now.
    expect(await arm(browser)).toMatchObject({
      kind: "refused",
      code: "conflict",
      message: expect.stringContaining("Another browser"),
    });
  },
);

test("a passkey of which a node has said nothing may be there: no other browser has it", async () => {
  const vault = await imported({});
  const other = "browser-2" as BrowserId;
  const session = bed().sessions.get(browser) ?? never();
  bed().sessions.set(other, { ...session, browser: other, lease: "lease-2" as LeaseId });
  const silent = async () => refusal("node_silent");
  const { items } = bed().with({ fill: { isSupported: true, fill: never, passkey: silent } });
  const arm = (id: string) =>
    items.operate(vault.id, "site", {
      body: { type: "arm_passkey", browser_id: id },
      request: newRequestId(),
    });
  expect(await arm(browser)).toMatchObject({ code: "node_silent" });
  expect(await arm(other)).toMatchObject({ code: "conflict" });
});

function never(): never {
  throw new Error("nothing is filled here");
}
