import {
  calculateJwkThumbprint,
  compactDecrypt,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
} from "jose";
import { Secret } from "../../base/crypto/secret.js";
import { RemudaError } from "../../base/errors.js";
import type { ProjectId, VaultItemId } from "../../base/ids.js";
import type { EncryptionKey } from "../collection-form.js";
import { credentialBounds } from "../credentials/credential.js";
import type { DataKey, ValuePlace } from "./data-key.js";
import type { TransportKey, Vault } from "../vault.js";

const algorithm = "ECDH-ES";
const encryption = "A256GCM";

/** It is of the vault, not of an item. */
const placeOf = (project: ProjectId, { id }: Pick<Vault, "id">): ValuePlace => ({
  project,
  vault: id,
  item: "" as VaultItemId,
  field: "transport key",
  version: 0,
});

interface OwnVault {
  readonly project: ProjectId;
  readonly vault: Pick<Vault, "id">;
  readonly dataKey: DataKey;
}

/** A pair of keys by which values come to a vault; it stays for as long as the vault does. */
export async function makeTransportKey({ project, vault, dataKey }: OwnVault): Promise<TransportKey> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { crv: "P-256", extractable: true });
  const { kty, crv, x, y } = await exportJWK(publicKey);
  if (kty === undefined || crv === undefined || x === undefined || y === undefined)
    throw new Error("a key of P-256 has no point");
  const jwk = { kty, crv, x, y };
  const sealed = dataKey.seal(JSON.stringify(await exportJWK(privateKey)), placeOf(project, vault));
  return { kid: await calculateJwkThumbprint(jwk), jwk, sealed };
}

export const encryptionKeyOf = ({ kid, jwk }: TransportKey): EncryptionKey => ({
  alg: algorithm,
  enc: encryption,
  kid,
  jwk,
});

/** A value that came encrypted; `field`, `link`: what its header says that it is for. */
type DecryptedValue =
  | ({ readonly kind: "decrypted"; readonly value: Secret } & Pick<ShownHeader, "field" | "link">)
  | { readonly kind: "foreign-key" | "undecryptable" };

/** Decrypts values for one vault, with its private key opened once. */
export async function openDecrypter(
  { project, dataKey }: Omit<OwnVault, "vault">,
  vault: Pick<Vault, "id" | "transport">,
): Promise<(jwe: string) => Promise<DecryptedValue>> {
  const { kid, sealed } = vault.transport;
  const opened = dataKey.open(sealed, placeOf(project, vault));
  if (opened.kind !== "opened")
    throw new RemudaError("secret_unreadable", { message: `The key of vault ${vault.id} is damaged` });
  const key = await importJWK(JSON.parse(opened.text.reveal()) as JWK, algorithm);
  return async (jwe) => await decrypt(jwe, kid, key);
}

type PrivateKey = Awaited<ReturnType<typeof importJWK>>;

async function decrypt(jwe: string, kid: string, key: PrivateKey): Promise<DecryptedValue> {
  const header = headerOf(jwe);
  if (!header) return { kind: "undecryptable" };
  if (header.kid !== kid) return { kind: "foreign-key" };
  if (header.zip !== undefined || header.crit !== undefined) return { kind: "undecryptable" };
  try {
    const { plaintext } = await compactDecrypt(jwe, key, {
      keyManagementAlgorithms: [algorithm],
      contentEncryptionAlgorithms: [encryption],
    });
    const value = new Secret(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(plaintext));
    plaintext.fill(0);
    return { kind: "decrypted", value, field: header.field, link: header.link };
  } catch {
    return { kind: "undecryptable" };
  }
}

interface ShownHeader {
  readonly kid: unknown;
  readonly zip: unknown;
  readonly crit: unknown;
  readonly field: string | undefined;
  /** The digest of a form's token. */
  readonly link: string | undefined;
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

function headerOf(jwe: string): ShownHeader | undefined {
  if (jwe.length > credentialBounds.encryptedLength) return undefined;
  try {
    const { kid, zip, crit, field, link } = decodeProtectedHeader(jwe) as Record<string, unknown>;
    return { kid, zip, crit, field: textOf(field), link: textOf(link) };
  } catch {
    return undefined;
  }
}
