import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import { findVaultId, newVaultId } from "../base/ids.js";
import { isWanted, pageOf } from "../spec/paging.js";
import { DataKey } from "./encryption/data-key.js";
import { wrapKey } from "./encryption/key-provider.js";
import { deleteDisarmed } from "./disarm-passkey.js";
import type { VaultPorts } from "./ports.js";
import { encryptionKeyOf, makeTransportKey } from "./encryption/transport-key.js";
import type { Vault, VaultKeys, VaultOperations } from "./vault.js";

export const makeVaultOperations = (ports: VaultPorts): VaultOperations => ({
  upsert: makeUpsert(ports),
  async list(query) {
    const { sees = () => true } = query;
    const all = await ports.store.all();
    return pageOf(
      all.filter((vault) => sees(vault) && isWanted(vault, query)),
      query,
    );
  },
  get: (ref) => getVault(ports, ref),
  async encryptionKey(ref) {
    const got = await getVault(ports, ref);
    return got.kind === "refused" ? got : done(encryptionKeyOf(got.value.transport));
  },
  remove: makeRemove(ports),
});

/** No name looks like an id, so that a text means one of the two. */
export async function getVault(
  { store }: Pick<VaultPorts, "store">,
  ref: string,
): Promise<Done<Vault> | Refusal> {
  const id = findVaultId(ref) ?? (await store.findNamed(ref));
  const vault = id && (await store.find(id));
  return vault ? done(vault) : refusal("vault_not_found");
}

const makeUpsert =
  (ports: VaultPorts): VaultOperations["upsert"] =>
  async ({ name }) => {
    if (findVaultId(name))
      return refusal("bad_request", {
        details: [{ code: "invalid_input", message: "name: must not look like an id" }],
      });
    const present = await ports.store.findNamed(name);
    const known = present && (await ports.store.find(present));
    if (known) return done({ vault: known, isNew: false });
    const id = newVaultId(ports.project);
    const made = await ports.store.create({
      id,
      name,
      keys: await makeKeys(ports, { id }),
      most: ports.maxVaults,
    });
    if (made.kind === "many")
      return refusal("limit_exceeded", {
        message: "The project has as many vaults as it may have",
        reached: { of: "project", most: ports.maxVaults },
      });
    const vault = await ports.store.find(made.id);
    return vault ? done({ vault, isNew: made.kind === "created" }) : refusal("conflict");
  };

async function makeKeys(ports: VaultPorts, vault: Pick<Vault, "id">): Promise<VaultKeys> {
  const dataKey = DataKey.make();
  try {
    const transport = await makeTransportKey({ project: ports.project, vault, dataKey });
    return { dataKey: { id: dataKey.id, wrapped: await wrapKey(ports, vault, dataKey) }, transport };
  } finally {
    dataKey.destroy();
  }
}

/** Refused while a pool names it; sessions that were created with it can be filled from it no more. */
const makeRemove =
  (ports: VaultPorts): VaultOperations["remove"] =>
  async (ref) => {
    const got = await getVault(ports, ref);
    if (got.kind === "refused") return got;
    const inUse = await ports.refuseInUse(got.value.id);
    if (inUse) return inUse;
    const { id } = got.value;
    // One that is gone by then was removed by the first try of this, whose answer was lost, or by another.
    await deleteDisarmed(ports, got.value, {
      items: ports.store.items(id),
      remove: () => ports.store.remove(id),
    });
    return done(null);
  };
