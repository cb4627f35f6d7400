import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { CannotStart } from "../../base/cannot-start.js";
import { textOf } from "../../base/log.js";

/** What TLS to Redis goes by beside the CAs that Node.js trusts, as PEM. */
export interface RedisTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** Paths of files, as the settings name them. */
interface TlsFiles {
  readonly tlsCaFile: string | null;
  readonly tlsCertificateFile: string | null;
  readonly tlsKeyFile: string | null;
}

const settings = "redis.tls_ca_file, redis.tls_certificate_file, redis.tls_key_file";

/** Throws `CannotStart` where a file cannot be read, or is not what TLS can go by. */
export function readTls({ tlsCaFile, tlsCertificateFile, tlsKeyFile }: TlsFiles): RedisTls {
  try {
    const tls = {
      ...(tlsCaFile !== null && { ca: readFileSync(tlsCaFile, "utf8") }),
      ...(tlsCertificateFile !== null && { cert: readFileSync(tlsCertificateFile, "utf8") }),
      ...(tlsKeyFile !== null && { key: readFileSync(tlsKeyFile, "utf8") }),
    };
    // Else it would be found out at each attempt to connect, which are repeated for ever.
    createSecureContext(tls);
    return tls;
  } catch (error) {
    throw new CannotStart(`${settings}: ${textOf(error)}`);
  }
}
