import { afterAll, beforeAll, expect, test } from "vitest";
import { newRequestId } from "../../src/base/ids.js";
import type { Submission } from "../../src/vault/collection-form.js";
import type { ShownItem } from "../../src/vault/shown-item.js";
import type { Vault } from "../../src/vault/vault.js";
import {
  encrypted,
  formHeader,
  runOutLink,
  secondControl,
  sharedVaultBed,
  tokenIn,
  valueOf,
} from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
let second: Awaited<ReturnType<typeof secondControl>>;
beforeAll(async () => {
  second = await secondControl(bed());
});
afterAll(() => second.close());

const fields = [
  { name: "user", type: "text", sensitive: false },
  { name: "password", type: "password" },
] as const;
interface Made {
  readonly vault: Vault;
  readonly item: ShownItem;
  readonly token: string;
  readonly sent: Submission;
}

/** What a page of a link is about to send. */
async function captured(token: string, user: string): Promise<Submission> {
  const form = await bed().forms.open(token);
  if (form.kind !== "form") throw new Error(`the form is ${form.kind}`);
  const values = Object.entries({ user, password: "secret-1" }).map(
    async ([name, value]) =>
      [name, await encrypted(form.encryptionKey, value, formHeader(token, name))] as const,
  );
  return { version: form.version, values: Object.fromEntries(await Promise.all(values)) };
}
async function made(): Promise<Made> {
  const vault = await bed().vault();
  const item = await bed().put(vault, fields);
  const token = tokenIn(item);
  return { vault, item, token, sent: await captured(token, "first") };
}
const read = async ({ vault }: Pick<Made, "vault">): Promise<ShownItem> =>
  valueOf(await second.items.get(vault.id, "shop", {}));
const collected = async ({ vault }: Made): Promise<string> => {
  const got = valueOf(
    await second.items.operate(vault.id, "shop", { body: { type: "collect" }, request: newRequestId() }),
  );
  return got.kind === "item" ? tokenIn(got.item) : "";
};

/** What happens to a link between its form's opening and what is sent by it. */
const ends: readonly (readonly [string, (at: Made) => Promise<unknown>, string])[] = [
  [
    "was used by another",
    async ({ token }) => bed().forms.submit(token, await captured(token, "other")),
    "used",
  ],
  ["ran out", ({ vault, item }) => runOutLink(bed(), vault, item), "expired"],
  [
    "ran out and was renewed",
    async (at) => {
      await runOutLink(bed(), at.vault, at.item);
      expect(tokenIn(await read(at))).not.toBe(at.token);
    },
    "expired",
  ],
  [
    "ran out, was renewed, and that one was used",
    async (at) => {
      await runOutLink(bed(), at.vault, at.item);
      const next = tokenIn(await read(at));
      expect(await bed().forms.submit(next, await captured(next, "next"))).toEqual({ kind: "done" });
    },
    "replaced",
  ],
  [
    "is of an item that was changed, and has another",
    async (at) => {
      valueOf(await bed().patch(at.vault, at.item, { fields: { user: { value: "changed" } } }));
      expect(await collected(at)).not.toBe(at.token);
    },
    "replaced",
  ],
  ["is of an item that was deleted", ({ vault }) => second.items.remove(vault.id, "shop"), "gone"],
  [
    "is of an item that was deleted and made again",
    async ({ vault }) => {
      valueOf(await second.items.remove(vault.id, "shop"));
      await bed().put(vault, fields);
    },
    "gone",
  ],
  [
    "is of a vault that was deleted and made again",
    async ({ vault }) => {
      valueOf(await second.vaults.remove(vault.id));
      const { vault: again } = valueOf(await second.vaults.upsert({ name: vault.name }));
      await bed().put(again, fields);
    },
    "gone",
  ],
];

test.each(ends)(
  "a link that %s is told as that at both controls, many times at once, and writes nothing",
  async (_what, end, kind) => {
    const at = await made();
    await end(at);
    const stored = async (): Promise<unknown> => await bed().items.get(at.vault.id, "shop", {});
    const before = await stored();
    const asked = [bed(), second, bed(), second].flatMap(({ forms }) => [
      forms.submit(at.token, at.sent),
      forms.submit(at.token, { ...at.sent, version: at.sent.version + 1 }),
      forms.open(at.token),
    ]);
    expect(new Set((await Promise.all(asked)).map((told) => told.kind))).toEqual(new Set([kind]));
    expect(await stored()).toEqual(before);
  },
);

test("what was sent by a link opens by no other: neither the one that renewed it nor that of the item made again", async () => {
  const at = await made();
  await runOutLink(bed(), at.vault, at.item);
  const renewed = tokenIn(await read(at));
  valueOf(await bed().items.remove(at.vault.id, "shop"));
  const again = tokenIn(await bed().put(at.vault, fields));
  expect(await bed().forms.submit(renewed, at.sent)).toEqual({ kind: "gone" });
  const faults = ["user", "password"].map((name) => ({ name, fault: "undecryptable" }));
  for (const { forms } of [bed(), second])
    expect(await forms.submit(again, at.sent)).toEqual({ kind: "invalid", fields: faults });
  expect((await read(at)).fields.map(({ hasValue }) => hasValue)).toEqual([false, false]);
});
