import { expect, test } from "vitest";
import { encrypted, formHeader, sharedVaultBed, tokenIn, valueOf } from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();

/** What the page of a form has sent for a password, as whoever relays or logs it has it. */
async function captured() {
  const vault = await bed().vault();
  const item = await bed().put(vault, [{ name: "password", type: "password" }], "theirs");
  const form = await bed().forms.open(tokenIn(item));
  if (form.kind !== "form") throw new Error(`the form is ${form.kind}`);
  const header = formHeader(tokenIn(item), "password");
  return { vault, jwe: await encrypted(form.encryptionKey, "hunter2", header) };
}

test("what was encrypted for a form opens in no other item's, though a field there has the same name", async () => {
  const { vault, jwe } = await captured();
  const shown = { name: "password", type: "text", sensitive: false } as const;
  const mine = await bed().put(vault, [shown], "mine");
  const submission = { version: 1, values: { password: jwe } };
  expect(await bed().forms.submit(tokenIn(mine), submission)).toEqual({
    kind: "invalid",
    fields: [{ name: "password", fault: "undecryptable" }],
  });
  expect(valueOf(await bed().items.get(vault.id, "mine", {})).fields).toEqual([
    { name: "password", hasValue: false },
  ]);
});

test("what was encrypted for a form is no encrypted value of the API", async () => {
  const { vault, jwe } = await captured();
  const mine = await bed().put(vault, [{ name: "password", type: "password" }], "mine");
  const patched = await bed().patch(vault, mine, { fields: { password: { encrypted_value: jwe } } });
  expect(patched).toMatchObject({ kind: "refused", code: "invalid_request" });
});
