import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import S3rver from "s3rver";
import { Secret } from "../../../src/base/crypto/secret.js";
import type { S3Settings } from "../../../src/archive/s3-archives.js";

export type Answer = S3rver["middleware"][number];

/** A server that speaks S3, on this machine, with its objects in a directory of its own. */
export interface S3Server {
  readonly settings: S3Settings;
  /** Where its buckets are. */
  readonly directory: string;
  /** Uploads in parts that were begun and neither ended nor given up. */
  uploads(): Promise<readonly string[]>;
  close(): Promise<void>;
}

const bucket = "archives";

/** s3rver takes uploads in parts; it cannot list them, nor give them up. */
const withUploads =
  (directory: string): Answer =>
  async (exchange, next) => {
    const { method, query } = exchange;
    if (method === "DELETE" && query["uploadId"] !== undefined) {
      await rm(join(directory, query["uploadId"]), { recursive: true });
      exchange.status = 204;
    } else if (method === "GET" && "uploads" in query) {
      const entries = await Promise.all((await namesIn(directory)).map((id) => uploadIn(directory, id)));
      exchange.type = "application/xml";
      exchange.body = `<?xml version="1.0" encoding="UTF-8"?><ListMultipartUploadsResult><IsTruncated>false</IsTruncated>${entries.join("")}</ListMultipartUploadsResult>`;
    } else await next();
  };

const namesIn = (directory: string): Promise<string[]> => readdir(directory).catch(() => []);

async function uploadIn(directory: string, id: string): Promise<string> {
  const [key, { birthtime }] = await Promise.all([
    readFile(join(directory, id, "key"), "utf8"),
    stat(join(directory, id)),
  ]);
  return `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${birthtime.toISOString()}</Initiated></Upload>`;
}

/** `answers` come before its own, in their order. */
export async function startS3Server(answers: readonly Answer[] = []): Promise<S3Server> {
  const directory = await mkdtemp(join(tmpdir(), "remuda-test-s3-"));
  const server = new S3rver({
    address: "127.0.0.1",
    port: 0,
    silent: true,
    directory,
    vhostBuckets: false,
    configureBuckets: [{ name: bucket }],
  });
  const begun = join(directory, bucket, "._S3rver_uploads");
  server.middleware.unshift(...answers, withUploads(begun));
  const { port } = await server.run();
  return {
    directory,
    settings: {
      bucket,
      prefix: "kept/",
      region: "us-east-1",
      endpoint: `http://127.0.0.1:${port}`,
      isPathStyle: true,
      limitMs: 10_000,
      credentials: { accessKeyId: new Secret("S3RVER"), secretAccessKey: new Secret("S3RVER") },
    },
    uploads: () => namesIn(begun),
    async close() {
      server.httpServer.closeAllConnections();
      await server.close();
      await rm(directory, { recursive: true });
    },
  };
}
