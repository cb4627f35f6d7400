import { X509Certificate } from "node:crypto";

const pemBlock = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g;

/**
 * What is wrong with a bundle of certificates in PEM, to be read after its field's name; text between the
 * blocks is a comment.
 */
export function findBundleFault(bundle: string): string | undefined {
  const blocks = [...bundle.matchAll(pemBlock)];
  if (blocks.length === 0) return "must have a certificate in PEM";
  if (blocks.some(([, label]) => label !== "CERTIFICATE")) return "must have nothing but certificates";
  const place = blocks.findIndex(([block]) => !isCertificate(block));
  return place === -1 ? undefined : `has a certificate that cannot be read, number ${place + 1}`;
}

function isCertificate(block: string): boolean {
  try {
    return new X509Certificate(block).raw.length > 0;
  } catch {
    return false;
  }
}
