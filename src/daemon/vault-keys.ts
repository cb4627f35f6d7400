import { Seal } from "../base/crypto/seal.js";
import type { Clock } from "../base/clock.js";
import { textOf } from "../base/log.js";
import type { Config } from "../config/config.js";
import { makeKmsProvider } from "../keys/aws-kms.js";
import { keepUnwrapped } from "../keys/kept-keys.js";
import { makeTransitProvider } from "../keys/transit.js";
import { type KeyProvider, makeKeyRing, makeLocalProvider } from "../vault/encryption/key-provider.js";
import { type RewrapReport, rewrapVaults, type VaultKeyring } from "../vault/encryption/rewrap.js";
import type { VaultStore } from "../vault/vault.js";
import type { DaemonParts } from "./parts.js";
import type { Stores } from "./stores.js";

type KeySettings = Config["vault"]["keys"];

/** What `vault.keys` names: one that wraps, and all that unwrap. */
export function openVaultKeyring(
  { vault: { keys } }: { readonly vault: Pick<Config["vault"], "keys"> },
  seal: Seal,
  clock: Clock,
): VaultKeyring {
  const providers = {
    local: makeLocalProvider(seal),
    transit: openTransit(keys, clock),
    aws_kms: openKms(keys, clock),
  };
  const first = providers[keys.provider];
  if (!first) throw new Error(`vault.keys.provider ${keys.provider} is not configured`);
  const previous = keys.previousEncryptionKey && makeLocalProvider(new Seal(keys.previousEncryptionKey));
  const others = [...Object.values(providers), previous].filter(
    (provider): provider is KeyProvider => Boolean(provider) && provider !== first,
  );
  return { first, ring: makeKeyRing(first, others) };
}

function openTransit(
  {
    transitAddress: address,
    transitToken: token,
    transitMount: mount,
    transitKey: key,
    limitMs,
  }: KeySettings,
  clock: Clock,
): KeyProvider | undefined {
  if (address === null || token === null) return undefined;
  return keepUnwrapped(makeTransitProvider({ address, token, mount, key, limitMs }), clock);
}

function openKms(
  { kmsKey: key, kmsRegion: region, kmsEndpoint, kmsAccessKeyId, kmsSecretAccessKey, limitMs }: KeySettings,
  clock: Clock,
): KeyProvider | undefined {
  if (key === null || region === null || kmsAccessKeyId === null || kmsSecretAccessKey === null)
    return undefined;
  const endpoint = kmsEndpoint ?? `https://kms.${region}.amazonaws.com`;
  const credentials = async () => ({
    accessKeyId: kmsAccessKeyId.reveal(),
    secretAccessKey: kmsSecretAccessKey.reveal(),
  });
  const now = (): number => clock.now();
  return keepUnwrapped(makeKmsProvider({ endpoint, region, key, credentials, now, limitMs }), clock);
}

/** Wraps by the provider of now what another has wrapped. */
export async function rewrapAll(
  { projects }: Pick<Stores, "projects">,
  keyring: VaultKeyring,
): Promise<RewrapReport> {
  const all = await projects.all();
  const vaults = all.map(({ projects: { project }, vaults: store }) => ({ project, store }));
  return await rewrapVaults(keyring, vaults);
}

/**
 * Counts the bytes of every vault anew. A release that kept no sums may have written items that are in none.
 */
export async function countVaultsAtStart({
  stores,
  log,
}: Pick<DaemonParts, "stores" | "log">): Promise<void> {
  const countAll = async (vaults: Pick<VaultStore, "all" | "countBytes">): Promise<void> => {
    for (const { id } of await vaults.all()) await vaults.countBytes(id);
  };
  try {
    for (const { vaults } of await stores.projects.all()) await countAll(vaults);
  } catch (error) {
    log.error({ error: textOf(error) }, "bytes of vaults not counted");
  }
}

/**
 * What fails is left to the next start, or to `vault:rewrap`. A daemon that was started with another
 * encryption key than before says so here.
 */
export async function rewrapAtStart({ stores, keys, log }: DaemonParts): Promise<void> {
  try {
    const { wrapped: count, left } = await rewrapAll(stores, keys.vaults);
    for (const { vault, project, why } of left)
      log.error({ vault, project, error: why }, "key of a vault not wrapped anew");
    if (count + left.length > 0) log.info({ count, left: left.length }, "keys of vaults wrapped anew");
  } catch (error) {
    log.error({ error: textOf(error) }, "keys of vaults not wrapped anew");
  }
}
