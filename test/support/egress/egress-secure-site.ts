import { createHash, X509Certificate } from "node:crypto";
import { createServer } from "node:https";
import type { RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

/** A web server over TLS that browsers may reach, and whose certificate they cannot trust. */
export interface SecureSite {
  readonly host: string;
  readonly port: number;
  readonly origin: string;
  close(): Promise<void>;
}

/**
 * A key for tests only, and a certificate for 127.0.0.1 and localhost by an issuer that is not sent along: it
 * is to be fetched from issuer.outside.test, and what was revoked from ocsp.outside.test and
 * crl.outside.test (RFC 5280, 4.2.2.1 and 4.2.1.13). Good until 2126.
 */
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+/bZ8pSidhvBNRw0
kkIYpgK4Gg1ycB2hN2WBlfbEFWqhRANCAATPaxM2qjtvFq9O91iQ4vnpgNdhoQ18
xK5axqYl1GrJEAxtRiofHm+L8CTREWWYCCQtkjWSZXDYkVFlhDmoXiwx
-----END PRIVATE KEY-----
`;
const cert = `-----BEGIN CERTIFICATE-----
MIICcTCCAhagAwIBAgITNrhPIdw1SBicGCNFio9wg3XaJjAKBggqhkjOPQQDAjAq
MSgwJgYDVQQDDB9hbiBhdXRob3JpdHkgdGhhdCBub2JvZHkgdHJ1c3RzMCAXDTI2
MTEyMjE0MDQ0NloYDzIxMjYxMDI5MTQwNDQ2WjAhMR8wHQYDVQQDDBZhIHNpdGUg
dGhhdCBpcyBhbGxvd2VkMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEz2sTNqo7
bxavTvdYkOL56YDXYaENfMSuWsamJdRqyRAMbUYqHx5vi/Ak0RFlmAgkLZI1kmVw
2JFRZYQ5qF4sMaOCASAwggEcMAwGA1UdEwEB/wQCMAAwEwYDVR0lBAwwCgYIKwYB
BQUHAwEwGgYDVR0RBBMwEYcEfwAAAYIJbG9jYWxob3N0MGgGCCsGAQUFBwEBBFww
WjAxBggrBgEFBQcwAoYlaHR0cDovL2lzc3Vlci5vdXRzaWRlLnRlc3QvaXNzdWVy
LmRlcjAlBggrBgEFBQcwAYYZaHR0cDovL29jc3Aub3V0c2lkZS50ZXN0LzAxBgNV
HR8EKjAoMCagJKAihiBodHRwOi8vY3JsLm91dHNpZGUudGVzdC9saXN0LmNybDAd
BgNVHQ4EFgQUqbDpAN1AQLWZTDM3+cIhPSdunuQwHwYDVR0jBBgwFoAUx48e4bsF
qrEsry5/JI20jUMmtvYwCgYIKoZIzj0EAwIDSQAwRgIhAOMmBDkdZrfpl4Y6tdcR
RdlHZdSugEdSdVWNQReud5clAiEAjgfSejcMzpBmlyD3PSB63Os/G3gLaF3YY4TD
NAHDLBE=
-----END CERTIFICATE-----
`;

/** What such a server has. */
export const secureSiteCertificate = { key, cert };

/** What Chromium's `--ignore-certificate-errors-spki-list` knows the key by. */
export const secureSiteKey = createHash("sha256")
  .update(new X509Certificate(cert).publicKey.export({ type: "spki", format: "der" }))
  .digest("base64");

/** TLS 1.2, for its tickets are good for more than one connection. */
export async function openSecureSite(
  host: string,
  answer: RequestListener = (_, response) => void response.end("allowed"),
): Promise<SecureSite> {
  const server = createServer({ key, cert, maxVersion: "TLSv1.2" }, answer);
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    host,
    port,
    origin: `https://${host}:${port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}
