import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { Seal } from "../../src/base/crypto/seal.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { defaultProject, newRequestId, newVaultItemId, type ProjectId } from "../../src/base/ids.js";
import { DataKey, type ValuePlace } from "../../src/vault/encryption/data-key.js";
import { makeLocalProvider } from "../../src/vault/encryption/key-provider.js";
import { encrypted, seal, sharedVaultBed, tokenIn, valueOf } from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
const keyOf = (item: string): string => `remuda:{project-default}:${item}`;

test("a value opens where it was written, and in no other place", async () => {
  const key = DataKey.make();
  const vault = await bed().vault();
  const other = await bed().vault();
  const place: ValuePlace = {
    project: defaultProject,
    vault: vault.id,
    item: newVaultItemId(),
    field: "password",
    version: 3,
  };
  const sealed = key.seal("hunter2", place);
  expect(sealed).not.toContain("hunter2");
  const opened = key.open(sealed, place);
  expect(opened.kind === "opened" && opened.text.reveal()).toBe("hunter2");
  const elsewhere: Partial<ValuePlace>[] = [
    { project: "blueblueblue" as ProjectId },
    { vault: other.id },
    { item: newVaultItemId() },
    { field: "user" },
    { version: 4 },
  ];
  for (const over of elsewhere) expect(key.open(sealed, { ...place, ...over })).toEqual({ kind: "damaged" });
  expect(DataKey.make().open(sealed, place)).toEqual({ kind: "wrong-key" });
  const ending = sealed.endsWith("AA") ? "BB" : "AA";
  expect(key.open(sealed.slice(0, -2) + ending, place)).toEqual({ kind: "damaged" });
});

test("another encryption key is told from damage", async () => {
  const vault = await bed().vault();
  await bed().put(vault, [{ name: "password", type: "password", value: "hunter2" }]);
  const { items } = bed().with({
    provider: makeLocalProvider(new Seal(new Secret("another encryption key"))),
  });
  await expect(items.list(vault.id)).rejects.toMatchObject({
    code: "secret_unreadable",
    message: expect.stringContaining("another encryption key"),
  });
  await bed().scripts.ask(async (redis) => {
    const key = keyOf(`vault:${vault.id}`);
    const keys = JSON.parse((await redis.hget(key, "keys")) ?? "") as { dataKey: { wrapped: string } };
    const wrapped = `${keys.dataKey.wrapped.slice(0, -4)}AAAA`;
    await redis.hset(key, "keys", JSON.stringify({ ...keys, dataKey: { ...keys.dataKey, wrapped } }));
  });
  await expect(bed().items.list(vault.id)).rejects.toMatchObject({
    code: "secret_unreadable",
    message: expect.stringContaining("is damaged"),
  });
});

test("the key of one vault is not taken for another's, nor one value for another", async () => {
  const [one, other] = [await bed().vault(), await bed().vault()];
  const shown = { name: "user", type: "text", sensitive: false, value: "one" } as const;
  const item = await bed().put(one, [shown, { ...shown, name: "more", value: "two" }]);
  await bed().scripts.ask(async (redis) => {
    const keys = (await redis.hget(keyOf(`vault:${one.id}`), "keys")) ?? "";
    await redis.hset(keyOf(`vault:${other.id}`), "keys", keys);
    const values = JSON.parse(
      (await redis.hget(keyOf(`vaultValues:${one.id}`), item.item.id)) ?? "",
    ) as object;
    const [user, more] = Object.values(values) as unknown[];
    await redis.hset(
      keyOf(`vaultValues:${one.id}`),
      item.item.id,
      JSON.stringify({ user: more, more: user }),
    );
  });
  await expect(bed().items.get(one.id, "shop", {})).rejects.toMatchObject({ code: "secret_unreadable" });
  await expect(bed().items.list(other.id)).rejects.toMatchObject({ code: "secret_unreadable" });
});

test("no value, key or token stands in Redis, in clear or in a usual encoding", async () => {
  const value = `secret-${randomBytes(12).toString("hex")}`;
  const vault = await bed().vault();
  const { kid, jwk } = valueOf(await bed().vaults.encryptionKey(vault.id));
  const item = await bed().put(vault, [
    { name: "password", type: "password" },
    { name: "user", type: "text", sensitive: false, value },
  ]);
  const sent = await encrypted({ alg: "ECDH-ES", enc: "A256GCM", kid, jwk }, value);
  const pending = valueOf(await bed().patch(vault, item, { description: "x" }));
  valueOf(await bed().patch(vault, pending, { fields: { password: { encrypted_value: sent } } }));
  const kept = await everythingKept();
  expect(kept).toContain("shop");
  const searched = [value, tokenIn(item), tokenIn(pending), tokenIn(item).split(".")[1] ?? ""];
  for (const text of searched)
    for (const encoding of ["utf8", "base64", "base64url", "hex"] as const) {
      const looked = Buffer.from(text).toString(encoding).replaceAll("=", "");
      expect(kept.includes(looked.slice(0, -2)), `${encoding} of a secret`).toBe(false);
    }
});

/** All keys and values of Redis, as it dumps them and as it shows them. */
async function everythingKept(): Promise<string> {
  return await bed().scripts.ask(async (redis) => {
    const texts: string[] = [];
    for (const key of await redis.keys("*")) {
      const type = await redis.type(key);
      const read = { hash: "hgetall", string: "get", zset: "zrange", stream: "xrange" }[type] ?? "get";
      const ends = { zset: ["0", "-1"], stream: ["-", "+"] }[type] ?? [];
      texts.push(key, JSON.stringify(await redis.call(read, key, ...ends)));
    }
    return texts.join("\n");
  });
}

test("a link's token is told by the vault's key alone", async () => {
  const vault = await bed().vault();
  const item = await bed().put(vault, [{ name: "password", type: "password" }]);
  expect(tokenIn(item).length).toBeGreaterThanOrEqual("default.".length + 43);
  const other = makeLocalProvider(seal);
  const { items } = bed().with({ provider: other });
  expect(tokenIn(valueOf(await items.get(vault.id, "shop", {})))).toBe(tokenIn(item));
});

test("values that were not written keep the version at which they were", async () => {
  const vault = await bed().vault();
  const item = await bed().put(vault, [
    { name: "user", type: "text", sensitive: false, value: "me" },
    { name: "password", type: "password", value: "one" },
  ]);
  const next = valueOf(await bed().patch(vault, item, { fields: { password: { value: "two" } } }));
  const stored = (await bed().store.findItem(vault.id, "shop"))?.values;
  expect([stored?.get("user")?.version, stored?.get("password")?.version]).toEqual([1, 2]);
  expect(next.fields[0]).toEqual({ name: "user", hasValue: true, value: "me" });
});

test("an encryption key stays the same, and is of one vault", async () => {
  const [one, other] = [await bed().vault(), await bed().vault()];
  const first = valueOf(await bed().vaults.encryptionKey(one.id));
  expect(valueOf(await bed().vaults.encryptionKey(one.name))).toEqual(first);
  expect(first).toMatchObject({ alg: "ECDH-ES", enc: "A256GCM", jwk: { kty: "EC", crv: "P-256" } });
  expect(first.jwk).not.toHaveProperty("d");
  expect(valueOf(await bed().vaults.encryptionKey(other.id)).kid).not.toBe(first.kid);
});

test("an encrypted value is written as any other", async () => {
  const vault = await bed().vault();
  const key = valueOf(await bed().vaults.encryptionKey(vault.id));
  const body = {
    type: "credential",
    spec: {
      provider: "native",
      fields: [{ name: "code", type: "totp", encrypted_value: await encrypted(key, "JBSWY3DPEHPK3PXP") }],
    },
  } as const;
  const sent = { body: structuredClone(body) as never, request: newRequestId() };
  expect(valueOf(await bed().items.put(vault.id, "shop", sent)).status).toBe("ready");
});

test.each([
  [
    "for another vault",
    "encryption_key_mismatch",
    async () => {
      const other = valueOf(await bed().vaults.encryptionKey((await bed().vault()).id));
      return await encrypted(other, "x");
    },
  ],
  ["that is none", "invalid_request", async () => "a.b.c"],
  ["that was cut", "invalid_request", async (key) => (await encrypted(key, "x")).slice(0, -3)],
  [
    "that names another field",
    "invalid_request",
    async (key) => await encrypted(key, "x", { field: "user" }),
  ],
  ["that is too long", "bad_request", async (key) => await encrypted(key, "x".repeat(16_385))],
] as readonly (readonly [string, string, (key: Parameters<typeof encrypted>[0]) => Promise<string>])[])(
  "an encrypted value %s is refused with %s, and changes nothing",
  async (_, code, make) => {
    const vault = await bed().vault();
    const item = await bed().put(vault, [{ name: "password", type: "password", value: "one" }]);
    const key = valueOf(await bed().vaults.encryptionKey(vault.id));
    const got = await bed().patch(vault, item, {
      fields: { password: { encrypted_value: await make(key) } },
    });
    expect(got).toMatchObject({ kind: "refused", code });
    expect(valueOf(await bed().items.get(vault.id, "shop", {}))).toEqual(item);
  },
);

test("a field that is shown takes no encrypted value: it would open what was captured for another", async () => {
  const vault = await bed().vault();
  const item = await bed().put(vault, [{ name: "user", type: "text", sensitive: false }]);
  const key = valueOf(await bed().vaults.encryptionKey(vault.id));
  const sent = { encrypted_value: await encrypted(key, "hunter2") };
  expect(await bed().patch(vault, item, { fields: { user: sent } })).toMatchObject({ code: "bad_request" });
});

test("an empty encrypted value clears, where a form can bring one back", async () => {
  const vault = await bed().vault();
  const item = await bed().put(vault, [
    { name: "password", type: "password", value: "one" },
    { name: "code", type: "totp", value: "JBSWY3DPEHPK3PXP" },
  ]);
  const key = valueOf(await bed().vaults.encryptionKey(vault.id));
  const empty = { encrypted_value: await encrypted(key, "") };
  expect(await bed().patch(vault, item, { fields: { code: empty } })).toMatchObject({ code: "bad_request" });
  const got = valueOf(await bed().patch(vault, item, { fields: { password: empty } }));
  expect(got.status).toBe("pending_collection");
});
