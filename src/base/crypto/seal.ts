import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";
import { RemudaError } from "../errors.js";
import { Secret } from "./secret.js";

const version = "v1";
const cipher = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/**
 * A sealed text that was opened; `wrong-key`: it was sealed with another key; `damaged`: it is not whole, or
 * was sealed for another owner.
 */
export type UnsealResult =
  | { readonly kind: "opened"; readonly text: Secret }
  | { readonly kind: "wrong-key" | "damaged" };

/**
 * Authenticated encryption of what is kept at rest: AES-256-GCM under a key drawn from the deployment's own
 * (HKDF-SHA256, RFC 5869, which stretches nothing: that key has to be random). A sealed text is `v1.<key
 * id>.<nonce, ciphertext and tag in base64url>`.
 */
export class Seal {
  readonly #key: Buffer;
  /** Tells one key from another and nothing of it. */
  readonly #keyId: string;

  constructor(secret: Secret) {
    this.#key = Buffer.from(hkdfSync("sha256", secret.reveal(), "", "remuda seal", 32));
    this.#keyId = createHash("sha256").update("remuda seal id").update(this.#key).digest("hex").slice(0, 8);
  }

  /** `owner` is what the text belongs to, such as an id: it opens for no other. */
  close(text: string, owner: string): string {
    const nonce = randomBytes(nonceBytes);
    const sealing = createCipheriv(cipher, this.#key, nonce).setAAD(Buffer.from(owner));
    const parts = [nonce, sealing.update(text, "utf8"), sealing.final(), sealing.getAuthTag()];
    return `${version}.${this.#keyId}.${Buffer.concat(parts).toString("base64url")}`;
  }

  open(sealed: string, owner: string): UnsealResult {
    const [form, keyId = "", text = ""] = sealed.split(".");
    if (form !== version || keyId === "" || text === "") return { kind: "damaged" };
    if (keyId !== this.#keyId) return { kind: "wrong-key" };
    const bytes = Buffer.from(text, "base64url");
    if (bytes.length < nonceBytes + tagBytes) return { kind: "damaged" };
    const opening = createDecipheriv(cipher, this.#key, bytes.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    })
      .setAAD(Buffer.from(owner))
      .setAuthTag(bytes.subarray(-tagBytes));
    try {
      const opened = Buffer.concat([opening.update(bytes.subarray(nonceBytes, -tagBytes)), opening.final()]);
      return { kind: "opened", text: new Secret(opened.toString("utf8")) };
    } catch {
      return { kind: "damaged" };
    }
  }
}

/** What is sealed, such as `The secrets of proxy x`, and what helps where it does not open. */
interface SealedText {
  readonly sealed: string;
  readonly owner: string;
  readonly what: string;
  readonly remedy: string;
}

/** Throws `secret_unreadable`, with the words for it, where a sealed text does not open. */
export function openSealed(seal: Pick<Seal, "open">, { sealed, owner, what, remedy }: SealedText): string {
  const opened = seal.open(sealed, owner);
  if (opened.kind === "opened") return opened.text.reveal();
  const why =
    opened.kind === "wrong-key"
      ? "were sealed with another encryption key (REMUDA_ENCRYPTION_KEY)"
      : "are damaged";
  throw new RemudaError("secret_unreadable", { message: `${what} ${why}; ${remedy}` });
}
