import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testCertificate, testKey } from "../egress/egress-certificate.js";
import { redisCertificates } from "./redis-certificates.js";

/**
 * How servers of tests speak: clear text; TLS alone, with the certificate of tests; or the same with
 * certificates of a CA of their own, also asked of clients.
 */
export type Speech = "clear" | "tls" | "mutual tls";

/** What servers show each other and a test's own clients show them. */
export const identities = {
  tls: { ca: testCertificate, cert: testCertificate, key: testKey },
  "mutual tls": {
    ca: redisCertificates.ca,
    cert: redisCertificates.server,
    key: redisCertificates.serverKey,
  },
} as const;

/** Gives the settings of a server or a sentinel that speaks only TLS; none of one that does not. */
export async function tlsIn(folder: string, speech: Speech): Promise<readonly string[]> {
  if (speech === "clear") return [];
  const { ca, cert, key } = identities[speech];
  const pathOf = (name: string): string => join(folder, `${name}.pem`);
  await Promise.all([
    writeFile(pathOf("ca"), ca),
    writeFile(pathOf("cert"), cert),
    writeFile(pathOf("key"), key),
  ]);
  return [
    `tls-cert-file ${pathOf("cert")}`,
    `tls-key-file ${pathOf("key")}`,
    `tls-ca-cert-file ${pathOf("ca")}`,
    `tls-auth-clients ${speech === "tls" ? "no" : "yes"}`,
    "tls-replication yes",
  ];
}

export const asArguments = (lines: readonly string[]): readonly string[] =>
  lines.flatMap((line) => `--${line}`.split(" "));
