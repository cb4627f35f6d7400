import { createHash } from "node:crypto";

/**
 * Extensions that are part of Chromium, which its policy does not close: users see PDFs by the viewer. A test
 * asks the installed Chromium for all that it has (Chromium 156 has the viewer alone).
 */
export const builtinExtensions: ReadonlySet<string> = new Set(["mhjfbmdgcfjbbpaeojofohoefgiehjai"]);

/** What an extension of this key is called: the head of the hash, in the letters a to p. */
export const extensionIdOf = (key: Buffer): string =>
  createHash("sha256")
    .update(key)
    .digest("hex")
    .slice(0, 32)
    .replace(/[0-9a-f]/g, (digit) => String.fromCharCode(97 + Number.parseInt(digit, 16)));

/**
 * The `key` of a manifest: base64, or that between the lines of a PEM, as Chromium's
 * Extension::ParsePEMKeyBytes reads it.
 */
export function manifestKey(text: string): Buffer {
  const joined = text.replace(/[\t-\r ]+/g, (gap) => (/[\n\r]/.test(gap) ? "" : " ")).trim();
  const base64 = /^-----BEGIN.*?KEY-----(.*)-----END/.exec(joined)?.[1] ?? joined;
  return Buffer.from(base64, "base64");
}
