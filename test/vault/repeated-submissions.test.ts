import { expect, test } from "vitest";
import { RemudaError } from "../../src/base/errors.js";
import { defaultProject } from "../../src/base/ids.js";
import { RedisVaultStore } from "../../src/store/project/vault-store.js";
import type { Submission, Submitted } from "../../src/vault/collection-form.js";
import type { FieldCreate } from "../../src/vault/item-bodies.js";
import { defaultLimits } from "../support/store/store-limits.js";
import { encrypted, formHeader, secondControl, sharedVaultBed, tokenIn } from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
const login: readonly FieldCreate[] = [{ name: "password", type: "password" }];

/** A link, and what a page sends by it. */
async function made() {
  const vault = await bed().vault();
  const token = tokenIn(await bed().put(vault, login));
  const sent = async (value: string): Promise<Submission> => {
    const form = await bed().forms.open(token);
    if (form.kind !== "form") throw new Error(`the form is ${form.kind}`);
    const password = await encrypted(form.encryptionKey, value, formHeader(token, "password"));
    return { version: form.version, values: { password } };
  };
  const item = async () => {
    const got = await bed().items.get(vault.id, "shop", {});
    if (got.kind === "refused") throw new Error(got.code);
    return got.value;
  };
  return { vault, token, sent, item };
}

test("the same bytes once more are told what the first were, at another control too, and others that it was used", async () => {
  const { vault, token, sent, item } = await made();
  const [first, other] = [await sent("one"), await sent("two")];
  expect(await bed().forms.submit(token, first)).toEqual({ kind: "done" });
  const second = await secondControl(bed());
  for (const { forms } of [bed(), second]) {
    expect(await forms.submit(token, first)).toEqual({ kind: "done" });
    expect(await forms.submit(token, other)).toEqual({ kind: "used" });
    expect(await forms.open(token)).toEqual({ kind: "used" });
  }
  await second.close();
  expect((await item()).item.version).toBe(2);
  // So they are where the item has changed or gone since.
  await bed().patch(vault, await item(), { description: "Shop" });
  expect(await bed().forms.submit(token, first)).toEqual({ kind: "done" });
  await bed().items.remove(vault.id, "shop");
  expect(await bed().forms.submit(token, first)).toEqual({ kind: "done" });
  expect(await bed().forms.submit(token, other)).toEqual({ kind: "used" });
});

test("the same bytes many times at once are one submission", async () => {
  const { token, sent, item } = await made();
  const submission = await sent("one");
  const second = await secondControl(bed());
  const all = Array.from({ length: 8 }, (_, at) => (at % 2 === 0 ? bed() : second));
  const told = await Promise.all(all.map(({ forms }) => forms.submit(token, submission)));
  await second.close();
  expect(told).toEqual(all.map((): Submitted => ({ kind: "done" })));
  expect((await item()).item.version).toBe(2);
});

test("a submission that was made and not synced is told as done once it is", async () => {
  const { token, sent, item } = await made();
  const submission = await sent("one");
  let isSynced = false;
  const writes = {
    async write<Value>(work: () => Promise<Value>): Promise<Value> {
      const value = await work();
      if (!isSynced) throw new RemudaError("store_unavailable");
      return value;
    },
  };
  const store = new RedisVaultStore(bed().scripts, defaultProject, { writes, limits: defaultLimits });
  const { forms } = bed().with({ store });
  for (let count = 0; count < 2; count += 1)
    await expect(forms.submit(token, submission)).rejects.toMatchObject({ code: "store_unavailable" });
  isSynced = true;
  expect(await forms.submit(token, submission)).toEqual({ kind: "done" });
  expect((await item()).item.version).toBe(2);
});
