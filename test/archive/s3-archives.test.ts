import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { Secret } from "../../src/base/crypto/secret.js";
import { S3Archives, type S3Settings } from "../../src/archive/s3-archives.js";
import { allOf, bytesOf, newFile } from "../support/archive/archive-bed.js";
import { type S3Server, startS3Server } from "../support/archive/s3-server.js";

const keyId = "AKIDNOBODY";
const secretKey = "an-access-key-that-nobody-may-read";
/** Refuses as Amazon refuses a key that it does not know: it repeats what was signed, and by whom. */
const refuse = (reply: ServerResponse): unknown =>
  reply
    .writeHead(403, { "content-type": "application/xml" })
    .end(
      `<?xml version="1.0"?><Error><Code>SignatureDoesNotMatch</Code><Message>The signature of ${keyId} does not match</Message>` +
        `<AWSAccessKeyId>${keyId}</AWSAccessKeyId><CanonicalRequest>Canonical ${secretKey}</CanonicalRequest></Error>`,
    );
let server: S3Server;
beforeAll(async () => {
  server = await startS3Server();
});
afterAll(() => server.close());

/** All that a store may be asked. */
const asksOf = (archives: S3Archives, { digest, path }: Awaited<ReturnType<typeof newFile>>) => [
  () => archives.open(digest),
  () => archives.put(digest, path),
  () => allOf(archives.list()),
  () => archives.remove(digest),
];
const open = (over: Partial<S3Settings> = {}): S3Archives => {
  const archives = new S3Archives({ ...server.settings, ...over });
  onTestFinished(() => archives.close());
  return archives;
};

test("stores of different prefixes in one bucket see nothing of each other", async () => {
  const [one, other, all] = [open({ prefix: "one/" }), open({ prefix: "one/other/" }), open({ prefix: "" })];
  const file = await newFile();
  await one.put(file.digest, file.path);
  expect(await allOf(other.list())).toEqual([]);
  expect(await allOf(all.list())).toEqual([]);
  expect(await allOf(one.list())).toHaveLength(1);
  await one.remove(file.digest);
});

test("a put again makes it new", async () => {
  const archives = open({ prefix: "again/" });
  const file = await newFile();
  await archives.put(file.digest, file.path);
  const [first] = await allOf(archives.list());
  await expect.poll(() => Date.now() - (first?.putAt ?? 0)).toBeGreaterThan(1100);
  await archives.put(file.digest, file.path);
  expect((await allOf(archives.list()))[0]?.putAt).toBeGreaterThan(first?.putAt ?? Infinity);
});

test("a large one that fails half way leaves no object and no parts", async () => {
  const archives = open({ prefix: "half/" });
  const [large, other] = [await newFile(30 * 2 ** 20), await newFile(10)];
  await expect(archives.put(other.digest, large.path)).rejects.toThrow("not its own");
  expect(await allOf(archives.list())).toEqual([]);
  expect(await server.uploads()).toEqual([]);
});

describe("where the store does not do as it is asked", () => {
  test("keys it does not know: unavailable, and no word of them", async () => {
    const archives = open({
      endpoint: await silentServer(refuse),
      credentials: { accessKeyId: new Secret(keyId), secretAccessKey: new Secret(secretKey) },
    });
    const file = await newFile();
    const asks = [
      () => archives.put(file.digest, file.path),
      () => archives.open(file.digest),
      () => allOf(archives.list()),
      () => archives.remove(file.digest),
      () => archives.removeStale(file.digest, 0),
      () => archives.tidy(() => true),
    ];
    for (const ask of asks) {
      const fault: unknown = await ask().catch((error: unknown) => error);
      expect(fault).toMatchObject({ code: "store_unavailable" });
      for (const said of [
        inspect(fault, { depth: 10, showHidden: true }),
        JSON.stringify(fault),
        String(fault),
      ]) {
        expect(said).not.toMatch(/AKID|nobody-may-read|Signature=|Canonical/);
      }
    }
  });

  test("a bucket that is not there, and a server that is not there", async () => {
    const file = await newFile();
    for (const archives of [open({ bucket: "no-such-bucket" }), open({ endpoint: "http://127.0.0.1:9" })]) {
      await expect(archives.put(file.digest, file.path)).rejects.toMatchObject({ code: "store_unavailable" });
      await expect(allOf(archives.list())).rejects.toMatchObject({ code: "store_unavailable" });
    }
  });

  test("something before it that answers 404 in its own words: no archive is missing by that", async () => {
    const endpoint = await silentServer((reply) => reply.writeHead(404).end("<html>no backend</html>"));
    const [archives, file] = [open({ endpoint }), await newFile()];
    for (const ask of asksOf(archives, file))
      await expect(ask()).rejects.toMatchObject({ code: "store_unavailable" });
    const missing = await open()
      .open(file.digest)
      .catch((error: unknown) => error);
    expect(missing).toMatchObject({ code: "archive_missing" });
  });

  test("a server that never answers is given up after the limit", async () => {
    const archives = open({ endpoint: await silentServer(() => {}), limitMs: 300 });
    const file = await newFile();
    for (const ask of asksOf(archives, file)) {
      await expect(ask()).rejects.toMatchObject({ code: "store_unavailable" });
    }
  });

  test("a transfer that stops half way is given up after the limit", async () => {
    const archives = open({
      limitMs: 300,
      endpoint: await silentServer((reply) =>
        reply.writeHead(200, { "content-length": "100000" }).write(Buffer.alloc(5000)),
      ),
    });
    const { digest } = await newFile();
    await expect(archives.open(digest).then(bytesOf)).rejects.toThrow();
  });

  test("bytes that are not the digest's are not given out", async () => {
    const archives = open({ endpoint: await silentServer((reply) => reply.end("something else")) });
    const { digest } = await newFile();
    await expect(archives.open(digest).then(bytesOf)).rejects.toThrow("not its own");
  });
});

test("parts of an upload that nobody ended go once they are old", async () => {
  const archives = open({ prefix: "parts/" });
  const { CreateMultipartUploadCommand, S3Client } = await import("@aws-sdk/client-s3");
  const { endpoint = "", bucket } = server.settings;
  const client = new S3Client({
    endpoint,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
  });
  onTestFinished(() => client.destroy());
  const { digest } = await newFile();
  for (const Key of [`parts/${digest}`, "parts/of-somebody-else"])
    await client.send(new CreateMultipartUploadCommand({ Bucket: bucket, Key }));
  await archives.tidy(() => false);
  expect(await server.uploads()).toHaveLength(2);
  await archives.tidy(() => true);
  expect(await server.uploads()).toHaveLength(1);
});

/** A server that answers every request so. */
async function silentServer(answer: (reply: ServerResponse) => unknown): Promise<string> {
  const silent: Server = createServer((_request, reply) => void answer(reply));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    silent.closeAllConnections();
    silent.close();
  });
  return `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
}

test("credentials that are not configured are found when the store is opened, before a request needs them", async () => {
  let asked = (): void => {};
  const isAsked = new Promise<void>((resolve) => (asked = resolve));
  const role = createServer((_request, reply) => {
    asked();
    reply.writeHead(403).end();
  });
  await once(role.listen(0, "127.0.0.1"), "listening");
  const place = `http://127.0.0.1:${(role.address() as AddressInfo).port}`;
  vi.stubEnv("AWS_CONTAINER_CREDENTIALS_FULL_URI", place);
  // Those of whoever runs the test would be found first.
  vi.stubEnv("AWS_ACCESS_KEY_ID", "");
  for (const file of ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"]) vi.stubEnv(file, "/dev/null");
  const { credentials: _own, ...settings } = server.settings;
  const archives = new S3Archives(settings);
  await isAsked;
  archives.close();
  vi.unstubAllEnvs();
  role.closeAllConnections();
  role.close();
});
