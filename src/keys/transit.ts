import type { Secret } from "../base/crypto/secret.js";
import { RemudaError } from "../base/errors.js";
import { isRecord } from "../base/is-record.js";
import { readAnswer } from "../base/net/read-answer.js";
import { type KeyProvider, maxAnswerBytes, type UnwrapResult } from "../vault/encryption/key-provider.js";

interface TransitOptions {
  /** Where HashiCorp Vault is. */
  readonly address: string;
  readonly token: Secret;
  /** Where its transit engine is mounted, and which of its keys wraps. */
  readonly mount: string;
  readonly key: string;
  readonly limitMs: number;
}

type TransitAnswer =
  | { readonly kind: "answered"; readonly data: unknown }
  | { readonly kind: "refused" | "away" };

/**
 * The transit engine of HashiCorp Vault (its HTTP API, encrypt and decrypt with `associated_data`). A wrapped
 * key is `transit.<mount/key in base64url>.<ciphertext>`, so that another key is told from damage.
 */
export function makeTransitProvider(options: TransitOptions): KeyProvider {
  const prefix = `transit.${Buffer.from(`${options.mount}/${options.key}`).toString("base64url")}.`;
  const ask = (
    operation: "encrypt" | "decrypt",
    body: Readonly<Record<string, string>>,
  ): Promise<TransitAnswer> => post(options, operation, body);
  const bound = (context: string) => ({ associated_data: Buffer.from(context).toString("base64") });
  return {
    isOwn: (wrapped) => wrapped.startsWith("transit."),
    async wrap(bytes, context) {
      const got = await ask("encrypt", { plaintext: bytes.toString("base64"), ...bound(context) });
      const text = got.kind === "answered" ? textIn(got.data, "ciphertext") : undefined;
      if (text === undefined)
        throw new RemudaError("unavailable", {
          message: "HashiCorp Vault has not wrapped the key of a vault",
        });
      return prefix + text;
    },
    async unwrap(wrapped, context): Promise<UnwrapResult> {
      if (!wrapped.startsWith(prefix)) return { kind: "wrong-key" };
      const got = await ask("decrypt", { ciphertext: wrapped.slice(prefix.length), ...bound(context) });
      if (got.kind !== "answered") return { kind: got.kind === "refused" ? "damaged" : "unavailable" };
      const text = textIn(got.data, "plaintext");
      return text === undefined
        ? { kind: "unavailable" }
        : { kind: "unwrapped", bytes: Buffer.from(text, "base64") };
    },
  };
}

const textIn = (data: unknown, name: string): string | undefined => {
  const text = isRecord(data) ? data[name] : undefined;
  return typeof text === "string" ? text : undefined;
};

/**
 * Only 400 speaks of what was sent, where HashiCorp Vault itself says it, which lists errors: all else may be
 * otherwise later.
 */
async function post(
  { address, token, mount, key, limitMs }: TransitOptions,
  operation: string,
  body: Readonly<Record<string, string>>,
): Promise<TransitAnswer> {
  const signal = AbortSignal.timeout(limitMs);
  try {
    const got = await fetch(`${address}/v1/${mount}/${operation}/${encodeURIComponent(key)}`, {
      method: "POST",
      headers: { "x-vault-token": token.reveal(), "content-type": "application/json" },
      body: JSON.stringify(body),
      redirect: "error",
      signal,
    });
    const read: unknown = JSON.parse(await readAnswer(got, { mostBytes: maxAnswerBytes, signal }));
    if (!isRecord(read)) return { kind: "away" };
    if (got.ok) return { kind: "answered", data: read["data"] };
    return { kind: got.status === 400 && Array.isArray(read["errors"]) ? "refused" : "away" };
  } catch {
    // Its text might have a part of what was sent.
    return { kind: "away" };
  }
}
