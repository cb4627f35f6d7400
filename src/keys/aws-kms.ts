import { createHash, createHmac } from "node:crypto";
import { RemudaError } from "../base/errors.js";
import type { Millis } from "../base/clock.js";
import { isRecord } from "../base/is-record.js";
import { readAnswer } from "../base/net/read-answer.js";
import { type KeyProvider, maxAnswerBytes, type UnwrapResult } from "../vault/encryption/key-provider.js";

interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}
interface KmsOptions {
  readonly endpoint: string;
  readonly region: string;
  /** Id, alias or ARN. */
  readonly key: string;
  credentials(): Promise<AwsCredentials>;
  now(): Millis;
  readonly limitMs: number;
}

type KmsAnswer =
  | { readonly kind: "answered"; readonly body: Readonly<Record<string, unknown>> }
  | { readonly kind: "refused"; readonly code: string }
  | { readonly kind: "away" };

/**
 * AWS KMS (Encrypt and Decrypt of its JSON API, with an encryption context). A wrapped key is
 * `kms.<region/key in base64url>.<CiphertextBlob>`.
 */
export function makeKmsProvider(options: KmsOptions): KeyProvider {
  const { region, key } = options;
  const prefix = `kms.${Buffer.from(`${region}/${key}`).toString("base64url")}.`;
  const bound = (context: string) => ({ KeyId: key, EncryptionContext: { remuda: context } });
  return {
    isOwn: (wrapped) => wrapped.startsWith("kms."),
    async wrap(bytes, context) {
      const got = await ask(options, "Encrypt", { ...bound(context), Plaintext: bytes.toString("base64") });
      const text = got.kind === "answered" ? got.body["CiphertextBlob"] : undefined;
      if (typeof text !== "string")
        throw new RemudaError("unavailable", { message: "AWS KMS has not wrapped the key of a vault" });
      return prefix + text;
    },
    async unwrap(wrapped, context): Promise<UnwrapResult> {
      if (!wrapped.startsWith(prefix)) return { kind: "wrong-key" };
      const CiphertextBlob = wrapped.slice(prefix.length);
      const got = await ask(options, "Decrypt", { ...bound(context), CiphertextBlob });
      if (got.kind === "refused") return { kind: refusals[got.code] ?? "unavailable" };
      const text = got.kind === "answered" ? got.body["Plaintext"] : undefined;
      return typeof text === "string"
        ? { kind: "unwrapped", bytes: Buffer.from(text, "base64") }
        : { kind: "unavailable" };
    },
  };
}

/** What its errors say of the wrapped key itself. */
const refusals: Readonly<Record<string, "damaged" | "wrong-key">> = {
  InvalidCiphertextException: "damaged",
  IncorrectKeyException: "wrong-key",
};

async function ask(options: KmsOptions, operation: string, body: object): Promise<KmsAnswer> {
  try {
    const text = JSON.stringify(body);
    const headers = signed(options, await options.credentials(), { operation, text });
    const signal = AbortSignal.timeout(options.limitMs);
    const got = await fetch(options.endpoint, {
      method: "POST",
      headers,
      body: text,
      redirect: "error",
      signal,
    });
    const read: unknown = JSON.parse(await readAnswer(got, { mostBytes: maxAnswerBytes, signal }));
    if (!isRecord(read)) return { kind: "away" };
    if (got.ok) return { kind: "answered", body: read };
    return { kind: "refused", code: String(read["__type"]).replace(/^.*#/, "") };
  } catch {
    // Its text might have a part of what was sent.
    return { kind: "away" };
  }
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

/** AWS Signature Version 4 of a POST to the root (AWS's documentation, "Create a signed request"). */
function signed(
  { endpoint, region, now }: KmsOptions,
  { accessKeyId, secretAccessKey, sessionToken }: AwsCredentials,
  { operation, text }: { readonly operation: string; readonly text: string },
): Record<string, string> {
  const stamp = new Date(now()).toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  const scope = `${stamp.slice(0, 8)}/${region}/kms/aws4_request`;
  const headers: Record<string, string> = {
    "content-type": "application/x-amz-json-1.1",
    host: new URL(endpoint).host,
    "x-amz-date": stamp,
    ...(sessionToken !== undefined && { "x-amz-security-token": sessionToken }),
    "x-amz-target": `TrentService.${operation}`,
  };
  const names = Object.keys(headers).toSorted();
  const canonical = [
    "POST",
    "/",
    "",
    ...names.map((name) => `${name}:${headers[name]}`),
    "",
    names.join(";"),
    sha256(text),
  ].join("\n");
  const key = [stamp.slice(0, 8), region, "kms", "aws4_request"].reduce<string | Buffer>(
    hmac,
    `AWS4${secretAccessKey}`,
  );
  const signature = hmac(key, ["AWS4-HMAC-SHA256", stamp, scope, sha256(canonical)].join("\n"));
  const { host: _sentByItself, ...sent } = headers;
  return {
    ...sent,
    authorization:
      `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, ` +
      `SignedHeaders=${names.join(";")}, Signature=${signature.toString("hex")}`,
  };
}
