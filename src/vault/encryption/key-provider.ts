import type { Seal } from "../../base/crypto/seal.js";
import { RemudaError } from "../../base/errors.js";
import type { ProjectId } from "../../base/ids.js";
import { DataKey } from "./data-key.js";
import type { Vault } from "../vault.js";

/** `wrong-key`: it was wrapped with another key than the provider has. */
export type UnwrapResult =
  | { readonly kind: "unwrapped"; readonly bytes: Buffer }
  | { readonly kind: "wrong-key" | "damaged" | "unavailable" };

/** Who keeps the key that wraps the keys of vaults. */
export interface KeyProvider {
  /** Whether it is of the form in which this kind of provider wraps. */
  isOwn(wrapped: string): boolean;
  /** `context` belongs to the wrapped key, and unwraps no other. Throws `unavailable` where none answers. */
  wrap(bytes: Buffer, context: string): Promise<string>;
  unwrap(wrapped: string, context: string): Promise<UnwrapResult>;
}

/** The most that a service which wraps keys may answer; what they really answer has some hundred bytes. */
export const maxAnswerBytes = 64 * 1024;

const contextOf = (project: ProjectId, vault: Pick<Vault, "id">, keyId: string): string =>
  `vault key ${project} ${vault.id} ${keyId}`;

/** The deployment's own encryption key. */
export const makeLocalProvider = (seal: Seal): KeyProvider => ({
  isOwn: (wrapped) => wrapped.startsWith("v1."),
  wrap: async (bytes, context) => seal.close(bytes.toString("base64"), context),
  async unwrap(wrapped, context) {
    const opened = seal.open(wrapped, context);
    if (opened.kind !== "opened") return opened;
    return { kind: "unwrapped", bytes: Buffer.from(opened.text.reveal(), "base64") };
  },
});

/**
 * Wraps by the first, and unwraps by whichever has wrapped: so one key takes the place of another while both
 * are there.
 */
export const makeKeyRing = (first: KeyProvider, others: readonly KeyProvider[]): KeyProvider => ({
  isOwn: (wrapped) => first.isOwn(wrapped),
  wrap: (bytes, context) => first.wrap(bytes, context),
  async unwrap(wrapped, context) {
    let got: UnwrapResult = { kind: "wrong-key" };
    for (const provider of [first, ...others]) {
      if (got.kind === "wrong-key" && provider.isOwn(wrapped)) got = await provider.unwrap(wrapped, context);
    }
    return got;
  },
});

export interface KeyPorts {
  readonly project: ProjectId;
  readonly provider: KeyProvider;
}

export async function wrapKey(
  { project, provider }: KeyPorts,
  vault: Pick<Vault, "id">,
  key: DataKey,
): Promise<string> {
  const bytes = key.reveal();
  try {
    return await provider.wrap(bytes, contextOf(project, vault, key.id));
  } finally {
    bytes.fill(0);
  }
}

/**
 * Does something with a vault's key, which is overwritten afterwards. Throws `secret_unreadable` where it
 * does not open, and `unavailable` where its provider can not be asked.
 */
export async function withDataKey<Value>(
  ports: KeyPorts,
  vault: Pick<Vault, "id" | "dataKey">,
  work: (key: DataKey) => Promise<Value>,
): Promise<Value> {
  const { id, wrapped } = vault.dataKey;
  const got = await ports.provider.unwrap(wrapped, contextOf(ports.project, vault, id));
  if (got.kind !== "unwrapped") throw faultOf(vault, got.kind);
  const key = new DataKey(id, got.bytes);
  try {
    return await work(key);
  } finally {
    key.destroy();
  }
}

function faultOf({ id }: Pick<Vault, "id">, kind: "wrong-key" | "damaged" | "unavailable"): RemudaError {
  if (kind === "unavailable")
    return new RemudaError("unavailable", { message: "Who keeps the vaults' keys does not answer" });
  const why =
    kind === "wrong-key" ? "was wrapped with another encryption key (REMUDA_ENCRYPTION_KEY)" : "is damaged";
  return new RemudaError("secret_unreadable", { message: `The key of vault ${id} ${why}` });
}

/** The key of a vault wrapped by the first provider alone; undefined where it is so already. */
export async function rewrapKey(
  { project, provider: ring }: KeyPorts,
  first: KeyProvider,
  vault: Pick<Vault, "id" | "dataKey">,
): Promise<Vault["dataKey"] | undefined> {
  const { id, wrapped } = vault.dataKey;
  const context = contextOf(project, vault, id);
  const now: UnwrapResult = first.isOwn(wrapped)
    ? await first.unwrap(wrapped, context)
    : { kind: "wrong-key" };
  if (now.kind === "unwrapped") now.bytes.fill(0);
  if (now.kind !== "wrong-key") return undefined;
  return await withDataKey({ project, provider: ring }, vault, async (key) => ({
    id,
    wrapped: await wrapKey({ project, provider: first }, vault, key),
  }));
}
