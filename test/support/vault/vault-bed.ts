import { afterAll, beforeAll } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { Seal } from "../../../src/base/crypto/seal.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { done, type Done, type Refusal } from "../../../src/base/errors.js";
import { defaultProject, newRequestId } from "../../../src/base/ids.js";
import { RedisVaultStore } from "../../../src/store/project/vault-store.js";
import { connectAlone } from "../../../src/store/redis/connect.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { makeCollectionForms } from "../../../src/vault/collect.js";
import type { CollectionForms, EncryptionKey } from "../../../src/vault/collection-form.js";
import { tokenDigest } from "../../../src/vault/encryption/data-key.js";
import type { FillOrder } from "../../../src/vault/fill.js";
import type { FieldCreate, ItemCreate, ItemPatch } from "../../../src/vault/item-bodies.js";
import { makeItemOperations } from "../../../src/vault/item-operations.js";
import type { ItemOperations } from "../../../src/vault/items.js";
import { makeLocalProvider } from "../../../src/vault/encryption/key-provider.js";
import type { LinkedSession, VaultPorts } from "../../../src/vault/ports.js";
import type { ShownItem } from "../../../src/vault/shown-item.js";
import { makeVaultOperations } from "../../../src/vault/vault-operations.js";
import type { Vault, VaultOperations } from "../../../src/vault/vault.js";
import { CompactEncrypt, importJWK } from "jose";
import { silentLog } from "../browser/chromium-host.js";
import { defaultLimits } from "../store/store-limits.js";
import { unsynced } from "../store/unsynced.js";
import { startRedis, type TestRedis } from "../store/redis.js";

export interface VaultBed {
  readonly server: TestRedis;
  readonly store: RedisVaultStore;
  readonly scripts: ScriptStore;
  readonly orders: FillOrder[];
  readonly sessions: Map<string, LinkedSession>;
  readonly vaults: VaultOperations;
  readonly items: ItemOperations;
  readonly forms: CollectionForms;
  /** The same with other ports. */
  with(over: Partial<VaultPorts>): Pick<VaultBed, "vaults" | "items" | "forms">;
  /** A vault of its own. */
  vault(): Promise<Vault>;
  put(vault: Vault, fields: readonly FieldCreate[], key?: string): Promise<ShownItem>;
  patch(vault: Vault, item: ShownItem, spec: ItemPatch["spec"]): Promise<Done<ShownItem> | Refusal>;
  close(): Promise<void>;
}

export const seal = new Seal(new Secret("the encryption key of this suite"));

/** What was answered, where it is no refusal. */
export function valueOf<Value>(got: Done<Value> | Refusal): Value {
  if (got.kind === "refused") throw new Error(`${got.code}: ${JSON.stringify(got.details ?? got.message)}`);
  return got.value;
}

export async function openVaultBed(): Promise<VaultBed> {
  const server = await startRedis();
  const scripts = await openScripts(server);
  const store = new RedisVaultStore(scripts, defaultProject, { writes: unsynced, limits: defaultLimits });
  const orders: FillOrder[] = [];
  const sessions = new Map<string, LinkedSession>();
  const ports: VaultPorts = {
    project: defaultProject,
    provider: makeLocalProvider(seal),
    store,
    clock: systemClock,
    stopping: new AbortController().signal,
    formUrl: "https://form.example",
    maxVaults: 1000,
    maxItems: 50,
    fill: {
      isSupported: true,
      passkey: async () => done(null),
      async fill(order) {
        orders.push(order);
        const fields = order.bindings.map((_, index) => ({ index, status: "filled" }) as const);
        return done({ status: "completed", fields });
      },
    },
    findSession: async (id) => sessions.get(id),
    refuseInUse: async () => undefined,
  };
  const using = (over: Partial<VaultPorts>): Pick<VaultBed, "vaults" | "items" | "forms"> => {
    const all = { ...ports, ...over };
    return {
      vaults: makeVaultOperations(all),
      items: makeItemOperations(all),
      forms: makeCollectionForms((project) => ({ ...all, project })),
    };
  };
  const operations = using({});
  let count = 0;
  return {
    server,
    store,
    scripts,
    orders,
    sessions,
    ...operations,
    with: using,
    vault: async () => valueOf(await operations.vaults.upsert({ name: `v${(count += 1)}` })).vault,
    async put(vault, fields, key = "shop") {
      const body: ItemCreate = { type: "credential", spec: { provider: "native", fields: [...fields] } };
      return valueOf(await operations.items.put(vault.id, key, { body, request: newRequestId() }));
    },
    patch: (vault, { item }, spec) =>
      operations.items.update(vault.id, item.key, {
        body: { type: "credential", version: item.version, spec },
        request: newRequestId(),
      }),
    async close() {
      await scripts.close();
      await server.stop();
    },
  };
}

/** Another control at the same Redis, with a connection of its own. */
export async function secondControl(
  bed: VaultBed,
): Promise<Pick<VaultBed, "vaults" | "items" | "forms" | "close">> {
  const scripts = await openScripts(bed.server);
  const store = new RedisVaultStore(scripts, defaultProject, { writes: unsynced, limits: defaultLimits });
  return { ...bed.with({ store }), close: () => scripts.close() };
}

async function openScripts(server: TestRedis): Promise<ScriptStore> {
  const redis = connectAlone({
    url: server.url,
    isCluster: false,
    connectTimeoutMs: 2000,
    commandTimeoutMs: 10_000,
  });
  const scripts = new ScriptStore(redis, silentLog);
  await scripts.open(new AbortController().signal);
  return scripts;
}

/** One for all tests of a file, there once its tests run. */
export function sharedVaultBed(): () => VaultBed {
  let bed: VaultBed | undefined;
  beforeAll(async () => {
    bed = await openVaultBed();
  });
  afterAll(() => bed?.close());
  return () => {
    if (!bed) throw new Error("the bed is there once tests run");
    return bed;
  };
}

/** As a page encrypts a value, for its field where one is named. */
export async function encrypted(
  { kid, jwk }: EncryptionKey,
  value: string,
  header: Record<string, unknown> = {},
): Promise<string> {
  return await new CompactEncrypt(new TextEncoder().encode(value))
    .setProtectedHeader({ alg: "ECDH-ES", enc: "A256GCM", kid, ...header })
    .encrypt(await importJWK({ ...jwk }, "ECDH-ES"));
}

/** What the form's page puts into the header of a value. */
export const formHeader = (token: string, field: string): Record<string, unknown> => ({
  field,
  link: tokenDigest(token),
});

export const tokenIn = (item: ShownItem): string => item.collect?.url.split("#token=")[1] ?? "";

/** Makes the link of an item run out, as 30 minutes do. */
export async function runOutLink(
  { scripts }: Pick<VaultBed, "scripts">,
  { id }: Vault,
  item: ShownItem,
): Promise<void> {
  const links = `remuda:{project-default}:vaultLinks:${id}`;
  const past = (text: string): string => text.replace(/^(\d+) \d+/, "$1 1000");
  const link = `remuda:{project-default}:collectionLink:${tokenDigest(tokenIn(item))}`;
  await scripts.ask(async (redis) => {
    await redis.hset(links, item.item.id, past((await redis.hget(links, item.item.id)) ?? ""));
    const known = JSON.parse((await redis.get(link)) ?? "") as object;
    await redis.set(link, JSON.stringify({ ...known, expiresAt: 1000 }), "KEEPTTL");
  });
}
