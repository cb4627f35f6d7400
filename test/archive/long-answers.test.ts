import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, test } from "vitest";
import { AwsBuckets } from "../../src/audit/export/aws-buckets.js";
import { S3Archives } from "../../src/archive/s3-archives.js";
import { systemClock } from "../../src/base/clock.js";
import type { Digest } from "../../src/base/ids.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { destination } from "../support/http/recorded-audit.js";

const servers: Server[] = [];
afterAll(() => servers.forEach((server) => server.closeAllConnections() ?? server.close()));

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const page = Buffer.alloc(2 ** 20, "<a>1</a>");
const pages = 64;
/** Far more than anybody says to a put or about a role; how many answers were taken to their end. */
async function talker(status: number): Promise<{ readonly url: string; readonly heard: () => number }> {
  let heard = 0;
  const url = await serve(async (request, response) => {
    request.resume();
    // Each wait for it leaves one that is not called.
    response.setMaxListeners(0);
    response.once("finish", () => (heard += 1)).writeHead(status, { "content-type": "text/xml" });
    for (let at = 0; at < pages && !response.destroyed; at += 1)
      if (!response.write(page)) await Promise.race([once(response, "drain"), once(response, "close")]);
    response.end();
  });
  return { url, heard: () => heard };
}

const granted =
  "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>A</AccessKeyId>" +
  "<SecretAccessKey>B</SecretAccessKey></Credentials></AssumeRoleResult></AssumeRoleResponse>";
const bucketsAt = (s3Endpoint: string, stsEndpoint: string): AwsBuckets =>
  new AwsBuckets({
    assumesRoles: true,
    credentials: { accessKeyId: new Secret("A"), secretAccessKey: new Secret("B") },
    s3Endpoint,
    stsEndpoint,
    isPathStyle: true,
    limitMs: 60_000,
    clock: systemClock,
  });

test.each([200, 403])("a token service that answers %d with 64 MiB is not listened to", async (status) => {
  const { url, heard } = await talker(status);
  await expect(bucketsAt(url, url).open(destination, { start: "a" })).rejects.toMatchObject({
    stage: "assume_role",
  });
  expect(heard()).toBe(0);
});

test.each([200, 403])("a bucket that answers %d with 64 MiB is not listened to", async (status) => {
  const { url, heard } = await talker(status);
  const sts = await serve(
    (request, response) => void request.resume().once("end", () => response.end(granted)),
  );
  const bucket = await bucketsAt(url, sts).open(destination, { start: "a" });
  await expect(bucket.put("a", Buffer.from("b"))).rejects.toMatchObject({ stage: "put_object" });
  bucket.close();
  expect(heard()).toBe(0);
});

test.each([200, 403])(
  "a store of archives that answers %d with 64 MiB is not listened to",
  async (status) => {
    const { url, heard } = await talker(status);
    const archives = new S3Archives({
      bucket: "archives",
      prefix: "",
      region: "us-east-1",
      endpoint: url,
      isPathStyle: true,
      credentials: { accessKeyId: new Secret("A"), secretAccessKey: new Secret("B") },
      limitMs: 60_000,
    });
    const digest = "a".repeat(64) as Digest;
    const asks: Record<string, () => Promise<unknown>> = {
      list: () => archives.list()[Symbol.asyncIterator]().next(),
      remove: () => archives.remove(digest),
      tidy: () => archives.tidy(() => true),
      // What is answered to it is the archive itself.
      ...(status !== 200 && { open: () => archives.open(digest) }),
    };
    for (const ask of Object.values(asks))
      await expect(ask()).rejects.toMatchObject({ code: "store_unavailable" });
    archives.close();
    expect(heard()).toBe(0);
  },
);
