import { expect, test } from "vitest";
import { Seal } from "../../../src/base/crypto/seal.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { defaultProject } from "../../../src/base/ids.js";
import { openVaultKeyring } from "../../../src/daemon/vault-keys.js";
import { keepUnwrapped } from "../../../src/keys/kept-keys.js";
import {
  type KeyProvider,
  makeKeyRing,
  makeLocalProvider,
} from "../../../src/vault/encryption/key-provider.js";
import { rewrapVaults, type VaultKeyring } from "../../../src/vault/encryption/rewrap.js";
import type { Vault, VaultStore } from "../../../src/vault/vault.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { seal, sharedVaultBed, tokenIn, valueOf } from "../../support/vault/vault-bed.js";

const bed = sharedVaultBed();
const old = makeLocalProvider(seal);
const oldKey = new Secret("the encryption key of this suite");
const nextKey = new Secret("the encryption key after this one");
const next = makeLocalProvider(new Seal(nextKey));
const all = () => [{ project: defaultProject, store: bed().store }];

test("another key takes the place of the first while both are there, and then alone opens every vault", async () => {
  const vault = await bed().vault();
  const item = await bed().put(vault, [
    { name: "user", type: "text", sensitive: false, value: "me" },
    { name: "password", type: "password" },
  ]);
  const ring = makeKeyRing(next, [old]);
  const both = bed().with({ provider: ring });
  expect(valueOf(await both.items.get(vault.id, "shop", {}))).toEqual(item);
  const later = valueOf(await both.vaults.upsert({ name: "made-between" })).vault;
  const count = (await bed().store.all()).length;
  const keyring = { first: next, ring };
  expect(await rewrapVaults(keyring, all())).toEqual({ wrapped: count - 1, kept: 1, left: [] });
  expect(await rewrapVaults(keyring, all())).toEqual({ wrapped: 0, kept: count, left: [] });
  const alone = bed().with({ provider: next });
  const read = valueOf(await alone.items.get(vault.id, "shop", {}));
  expect(read).toEqual(item);
  // Links stay what they were, since the vault's own key does.
  expect(tokenIn(read)).toBe(tokenIn(item));
  expect(valueOf(await alone.items.list(later.id))).toEqual([]);
  await expect(bed().items.get(vault.id, "shop", {})).rejects.toMatchObject({ code: "secret_unreadable" });
});

type KeySettings = Parameters<typeof openVaultKeyring>[0]["vault"]["keys"];
const local: KeySettings = {
  provider: "local",
  previousEncryptionKey: null,
  transitAddress: null,
  transitToken: null,
  transitMount: "transit",
  transitKey: "remuda",
  kmsKey: null,
  kmsRegion: null,
  kmsEndpoint: null,
  kmsAccessKeyId: null,
  kmsSecretAccessKey: null,
  limitMs: 1000,
};
const keyringOf = (key: Secret, over: Partial<KeySettings> = {}): VaultKeyring =>
  openVaultKeyring({ vault: { keys: { ...local, ...over } } }, new Seal(key), new DrivenClock());

test("a daemon of the first step of a change of keys opens what one of the next has wrapped, and the other way round", async () => {
  const vault = await bed().vault();
  const item = await bed().put(vault, [{ name: "user", type: "text", sensitive: false, value: "me" }]);
  const first = keyringOf(oldKey, { previousEncryptionKey: nextKey });
  const second = keyringOf(nextKey, { previousEncryptionKey: oldKey });
  const some = { project: defaultProject, store: only(vault) };
  const read = async ({ ring }: VaultKeyring) =>
    valueOf(await bed().with({ provider: ring }).items.get(vault.id, "shop", {}));
  // A start of the first step leaves all wrapped by the old one; beside one of the second it puts that back.
  expect(await rewrapVaults(first, [some])).toMatchObject({ wrapped: 0, kept: 1 });
  expect(await rewrapVaults(second, [some])).toMatchObject({ wrapped: 1 });
  expect(await read(first)).toEqual(item);
  await expect(read(keyringOf(oldKey))).rejects.toMatchObject({ code: "secret_unreadable" });
  expect(await rewrapVaults(first, [some])).toMatchObject({ wrapped: 1 });
  expect(await read(second)).toEqual(item);
});

test.each([
  ["transit", "transit/remuda", { transitAddress: "http://127.0.0.1:1", transitToken: new Secret("t") }],
  [
    "kms",
    "eu-west-1/k",
    {
      kmsKey: "k",
      kmsRegion: "eu-west-1",
      kmsEndpoint: "http://127.0.0.1:1",
      kmsAccessKeyId: new Secret("id"),
      kmsSecretAccessKey: new Secret("secret"),
    },
  ],
] as const)(
  "a daemon that wraps by local asks %s for what that has wrapped, once it is configured",
  async (of, key, settings) => {
    const wrapped = `${of}.${Buffer.from(key).toString("base64url")}.AAAA`;
    const unwrapped = async ({ ring }: VaultKeyring) => (await ring.unwrap(wrapped, "c")).kind;
    // Nobody answers at that address.
    expect(await unwrapped(keyringOf(oldKey, settings))).toBe("unavailable");
    expect(await unwrapped(keyringOf(oldKey))).toBe("wrong-key");
  },
);

test("a vault that is deleted meanwhile is left as it is", async () => {
  const vault = await bed().vault();
  await bed().store.remove(vault.id);
  expect(await bed().store.rewrap(vault, { id: "k", wrapped: "v1.x.y" })).toBe("stale");
});

test("a vault whose key does not open is left and named, and keeps no other from it", async () => {
  const [damaged, well] = [await bed().vault(), await bed().vault()];
  const { id } = damaged.dataKey;
  await bed().store.rewrap(damaged, { id, wrapped: `${damaged.dataKey.wrapped.slice(0, -8)}AAAAAAAA` });
  const some = { project: defaultProject, store: only(damaged, well) };
  const keyring = { first: next, ring: makeKeyRing(next, [old]) };
  const report = await rewrapVaults(keyring, [some]);
  expect(report).toMatchObject({
    wrapped: 1,
    kept: 0,
    left: [{ project: defaultProject, vault: damaged.id }],
  });
  // Whoever was cut short is carried on in the same way.
  expect(await rewrapVaults(keyring, [some])).toMatchObject({
    wrapped: 0,
    kept: 1,
    left: [{ vault: damaged.id }],
  });
});

test("two who wrap at once leave each vault wrapped once", async () => {
  const vaults = [await bed().vault(), await bed().vault(), await bed().vault()];
  const some = { project: defaultProject, store: only(...vaults) };
  const keyring = { first: next, ring: makeKeyRing(next, [old]) };
  const [one, other] = await Promise.all([rewrapVaults(keyring, [some]), rewrapVaults(keyring, [some])]);
  expect(one.wrapped + other.wrapped).toBe(3);
  expect([...one.left, ...other.left]).toEqual([]);
  expect(await rewrapVaults(keyring, [some])).toEqual({ wrapped: 0, kept: 3, left: [] });
});

/** The store as it would be if it had these vaults alone. */
function only(...vaults: readonly Vault[]): Pick<VaultStore, "all" | "find" | "rewrap"> {
  const { store } = bed();
  return {
    all: async () => (await store.all()).filter(({ id }) => vaults.some((vault) => vault.id === id)),
    find: (id) => store.find(id),
    rewrap: (vault, dataKey) => store.rewrap(vault, dataKey),
  };
}

test("who is far away is asked for a key once a minute", async () => {
  const clock = new DrivenClock();
  let asked = 0;
  const counting: KeyProvider = {
    ...old,
    unwrap: (wrapped, context) => {
      asked += 1;
      return old.unwrap(wrapped, context);
    },
  };
  const provider = keepUnwrapped(counting, clock);
  const wrapped = await provider.wrap(Buffer.alloc(32, 7), "c");
  for (let count = 0; count < 3; count += 1) {
    const got = await provider.unwrap(wrapped, "c");
    expect(got).toEqual({ kind: "unwrapped", bytes: Buffer.alloc(32, 7) });
    // Whoever has used the key overwrites what it was given.
    if (got.kind === "unwrapped") got.bytes.fill(0);
  }
  expect(asked).toBe(1);
  clock.stand(60_000);
  await provider.unwrap(wrapped, "c");
  expect(asked).toBe(2);
  expect(await provider.unwrap(wrapped, "another context")).toEqual({ kind: "damaged" });
});
