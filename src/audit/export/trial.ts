import { gzipSync } from "node:zlib";
import { randomBytes } from "node:crypto";
import { toBase62 } from "../../base/crypto/base62.js";
import { type Buckets, ExportFault, keyIn, type OpenBucket } from "./buckets.js";
import type { Destination, Trial } from "./destination.js";

const probeName = ".remuda-audit-log-export-test-";
const probeIdLength = 16;
const openToAll =
  "The role can be assumed without the external ID: its trust policy has to require it in a condition, " +
  "or others could have the service write as this role";

interface TrialPorts {
  readonly buckets: Buckets;
  readonly assumesRoles: boolean;
}

/** Does at a destination what a delivery does, and tells where it fails. */
export const makeTrial =
  (ports: TrialPorts) =>
  async (destination: Destination): Promise<Trial> => {
    const start = keyIn(destination, probeName);
    try {
      const bucket = await ports.buckets.open(destination, { start, mayRemove: true });
      return await tryBucket(ports, destination, bucket).finally(() => bucket.close());
    } catch (error) {
      if (error instanceof ExportFault) return { stage: error.stage, why: error.message };
      throw error;
    }
  };

async function tryBucket(
  { buckets, assumesRoles }: TrialPorts,
  destination: Destination,
  bucket: OpenBucket,
): Promise<Trial> {
  if (assumesRoles && (await buckets.isOpenToAll(destination)))
    return { stage: "assume_role", why: openToAll };
  const id = toBase62(randomBytes(probeIdLength), probeIdLength);
  const key = keyIn(destination, `${probeName}${id}.jsonl.gz`);
  await bucket.put(key, gzipSync(""));
  // Whoever lets nothing be removed still lets the log be delivered.
  await bucket.remove(key).catch(() => {});
  return { stage: "complete" };
}
