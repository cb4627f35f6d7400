import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from "node:crypto";
import type { UnsealResult } from "../../base/crypto/seal.js";
import { Secret } from "../../base/crypto/secret.js";
import { toBase62 } from "../../base/crypto/base62.js";
import type { ProjectId, VaultId, VaultItemId } from "../../base/ids.js";

const form = "v1";
const cipher = "aes-256-gcm";
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const keyIdLength = 12;

/** Where a value stands: it opens nowhere else. */
export interface ValuePlace {
  readonly project: ProjectId;
  readonly vault: VaultId;
  readonly item: VaultItemId;
  readonly field: string;
  /** The version that the item had when the value was written. */
  readonly version: number;
}

/** The vault's own key, which encrypts what is kept in it. It is kept wrapped (key-provider.ts). */
export class DataKey {
  #bytes: Buffer;

  /** Takes the bytes over: they are overwritten by `destroy`. */
  constructor(
    readonly id: string,
    bytes: Buffer,
  ) {
    if (bytes.length !== keyBytes) throw new Error("a data key has another length");
    this.#bytes = bytes;
  }

  static make(): DataKey {
    return new DataKey(toBase62(randomBytes(keyIdLength), keyIdLength), randomBytes(keyBytes));
  }

  /** AES-256-GCM; the text is `v1.<key's id>.<random nonce, ciphertext and tag in base64url>`. */
  seal(text: string, place: ValuePlace): string {
    const nonce = randomBytes(nonceBytes);
    const sealing = createCipheriv(cipher, this.#bytes, nonce).setAAD(this.#contextOf(place));
    const parts = [nonce, sealing.update(text, "utf8"), sealing.final(), sealing.getAuthTag()];
    return `${form}.${this.id}.${Buffer.concat(parts).toString("base64url")}`;
  }

  open(sealed: string, place: ValuePlace): UnsealResult {
    const [version, keyId = "", text = ""] = sealed.split(".");
    if (version !== form || text === "") return { kind: "damaged" };
    if (keyId !== this.id) return { kind: "wrong-key" };
    const bytes = Buffer.from(text, "base64url");
    if (bytes.length < nonceBytes + tagBytes) return { kind: "damaged" };
    const opening = createDecipheriv(cipher, this.#bytes, bytes.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    })
      .setAAD(this.#contextOf(place))
      .setAuthTag(bytes.subarray(-tagBytes));
    try {
      const opened = Buffer.concat([opening.update(bytes.subarray(nonceBytes, -tagBytes)), opening.final()]);
      const found = new Secret(opened.toString("utf8"));
      opened.fill(0);
      return { kind: "opened", text: found };
    } catch {
      return { kind: "damaged" };
    }
  }

  /** 32 bytes in base64url that only who has this key can tell. */
  draw(purpose: string, text: string): string {
    const own = Buffer.from(hkdfSync("sha256", this.#bytes, "", `remuda vault ${purpose}`, keyBytes));
    return createHmac("sha256", own).update(text).digest("base64url");
  }

  /** The bytes, for who wraps them. */
  reveal(): Buffer {
    return Buffer.from(this.#bytes);
  }

  destroy(): void {
    this.#bytes.fill(0);
  }

  /** A list of texts as JSON means one list only. */
  #contextOf({ project, vault, item, field, version }: ValuePlace): Buffer {
    return Buffer.from(
      JSON.stringify(["remuda vault value", form, project, vault, item, field, this.id, version]),
    );
  }
}

/** What stands for a token in Redis. */
export const tokenDigest = (token: string): string => createHash("sha256").update(token).digest("base64url");
