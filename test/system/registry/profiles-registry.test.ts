import Kernel, { ConflictError, NotFoundError, PermissionDeniedError } from "@onkernel/sdk";
import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { defaultProject, findProfileId } from "../../../src/base/ids.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { DirectoryArchives } from "../../../src/archive/directory-archives.js";
import { makeProfileArchives } from "../../../src/archive/profile-archives.js";
import { openStaging } from "../../../src/archive/staging.js";
import { StreamSeal } from "../../../src/archive/stream-seal.js";
import { pipeThrough } from "../../../src/archive/pipe-through.js";
import { decompress } from "../../../src/archive/formats/zstd.js";
import type { ProfileArchives } from "../../../src/registry/profiles/profile.js";
import { RedisProfileStore } from "../../../src/store/project/profile-store.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { encryptionKey } from "../../support/daemon/daemon-settings.js";
import { type Daemon, startDaemon } from "../../support/daemon/daemon.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";

let redis: TestRedis;
let client: Redis;
let folder: string;
let daemon: Daemon;
let kernel: Kernel;
let savesUnder: (key: string) => ProfileArchives;
beforeAll(async () => {
  [redis, folder] = await Promise.all([startRedis(), mkdtemp(join(tmpdir(), "remuda-profiles-"))]);
  client = redis.client();
  daemon = await startDaemon({
    role: "control",
    redisUrl: redis.url,
    file: { archives: { directory: join(folder, "archives") }, limits: { max_profiles: 12 } },
  });
  kernel = daemon.kernel({ maxRetries: 0 });
  const archives = new DirectoryArchives(join(folder, "archives"), systemClock);
  const ports = {
    profiles: new RedisProfileStore(new ScriptStore(client, silentLog), defaultProject),
    archives,
    staging: await openStaging(join(folder, "staging")),
  };
  savesUnder = (key) =>
    makeProfileArchives({
      ...ports,
      clock: systemClock,
      seal: new StreamSeal(new Secret(key)),
      maxBytes: 2 ** 30,
      open: (digest) => archives.open(digest),
    });
});
afterAll(async () => {
  await daemon.stop();
  client.disconnect();
  await redis.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Saves as a node does at a session's end. */
async function save(id: string, tar: Buffer, key = encryptionKey): Promise<void> {
  const profile = findProfileId(id);
  if (!profile) throw new Error(`${id} is no id`);
  expect(
    await savesUnder(key).save(profile, Readable.from([tar]), { signal: new AbortController().signal }),
  ).toBe("committed");
}
const failed = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "no error",
    (error: unknown) => error,
  );
const bytesOf = async (reply: Response): Promise<Buffer> => Buffer.from(await reply.arrayBuffer());
const unpacked = async (bytes: Buffer): Promise<Buffer> =>
  Buffer.concat(await pipeThrough(Readable.from([bytes]), decompress).toArray());
const archiveFiles = async (): Promise<string[]> =>
  (await readdir(join(folder, "archives"), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));

test("the official client creates, lists, reads, renames, downloads and deletes", async () => {
  const made = await kernel.profiles.create({ name: "me" });
  expect(made).toEqual({
    id: expect.stringMatching(/^[0-9a-z]{24}$/),
    name: "me",
    created_at: expect.stringMatching(/^\d{4}-.*Z$/),
  });
  const nameless = await kernel.profiles.create({});
  expect(nameless).not.toHaveProperty("name");
  expect((await kernel.profiles.list()).getPaginatedItems()).toEqual([nameless, made]);
  expect((await kernel.profiles.list({ name: "ME" })).getPaginatedItems()).toEqual([made]);
  expect(await kernel.profiles.retrieve("me")).toEqual(made);
  const renamed = await kernel.profiles.update("me", { name: "you" });
  expect(renamed).toEqual({ ...made, name: "you", updated_at: expect.stringMatching(/^\d{4}-.*Z$/) });
  expect((await kernel.profiles.download("you")).status).toBe(202);
  const [first, second] = [randomBytes(3_000_000), randomBytes(2_000_000)];
  for (const tar of [first, second]) {
    await save(made.id, tar);
    const [packed, plain] = await Promise.all([
      kernel.profiles.download("you"),
      kernel.profiles.download(made.id, { format: "tar" }),
    ]);
    expect([packed.status, packed.headers.get("content-type"), plain.status]).toEqual([
      200,
      "application/octet-stream",
      200,
    ]);
    expect((await bytesOf(plain)).equals(tar)).toBe(true);
    const bytes = await bytesOf(packed);
    expect(bytes.subarray(0, 4)).toEqual(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]));
    expect((await unpacked(bytes)).equals(tar)).toBe(true);
  }
  expect(Date.parse((await kernel.profiles.retrieve("you")).updated_at ?? "")).toBeGreaterThanOrEqual(
    Date.parse(renamed.updated_at ?? ""),
  );
  for (const id of ["you", nameless.id]) expect(await kernel.profiles.delete(id)).toBeNull();
  const works = [
    () => kernel.profiles.retrieve("you"),
    () => kernel.profiles.update(made.id, { name: "x" }),
    () => kernel.profiles.download("you"),
    () => kernel.profiles.delete(made.id),
  ];
  for (const work of works) expect(await failed(work())).toBeInstanceOf(NotFoundError);
  expect(await client.keys("*profile*")).toEqual([]);
});

test("names are there once, ids go before names, and there are no more than there may be", async () => {
  const me = await kernel.profiles.create({ name: "me" });
  const taken = await daemon.call("POST /profiles", { name: "me" });
  expect([taken.status, taken.body.code, taken.headers.get("x-should-retry")]).toEqual([
    409,
    "name_taken",
    "false",
  ]);
  const impostor = await kernel.profiles.create({ name: me.id });
  expect(await failed(kernel.profiles.update(impostor.id, { name: "me" }))).toBeInstanceOf(ConflictError);
  expect((await kernel.profiles.retrieve(me.id)).id).toBe(me.id);
  const raced = await Promise.all(
    Array.from({ length: 8 }, () => daemon.call("POST /profiles", { name: "raced" })),
  );
  expect(raced.map(({ status }) => status).toSorted()).toEqual([
    201,
    ...Array.from({ length: 7 }, () => 409),
  ]);
  const ids = [me.id, impostor.id, raced.find(({ status }) => status === 201)?.body.id as string];
  while (ids.length < 12) ids.push((await kernel.profiles.create({})).id);
  expect(await failed(kernel.profiles.create({}))).toBeInstanceOf(PermissionDeniedError);
  const seen: string[] = [];
  for await (const { id } of kernel.profiles.list({ limit: 5 })) seen.push(id);
  expect(seen).toEqual(ids.toReversed());
  await Promise.all(ids.map((id) => kernel.profiles.delete(id)));
});

test("one that a pool names is not deleted, until no pool names it any more", async () => {
  const { id } = await kernel.profiles.create({ name: "me" });
  const { body: pool } = await daemon.call("POST /browser_pools", {
    name: "herd",
    size: 1,
    fill_rate_per_minute: 0,
    profile: { name: "me" },
  });
  expect(pool).toMatchObject({ profile_id: id });
  await kernel.profiles.update("me", { name: "you" });
  expect(await failed(kernel.profiles.delete("you"))).toMatchObject({
    status: 400,
    error: {
      code: "resource_in_use",
      details: [{ code: "resource_in_use", message: `pool herd (${pool.id})` }],
    },
  });
  expect((await daemon.call("PATCH /browser_pools/herd", { profile: { id: "" } })).status).toBe(200);
  expect(await kernel.profiles.delete("you")).toBeNull();
  await kernel.browserPools.delete("herd");
});

test("what is kept is sealed, and what was sealed with another key cannot be read and says so", async () => {
  const { id } = await kernel.profiles.create({});
  await save(id, Buffer.from("a cookie of somebody".repeat(1000)));
  const kept = Buffer.concat(await Promise.all((await archiveFiles()).map((path) => readFile(path))));
  expect(kept.includes("a cookie")).toBe(false);
  await save(id, Buffer.from("a cookie of somebody else"), "another key than that of the daemon");
  for (const query of ["", "?format=tar"]) {
    expect(await daemon.call(`GET /profiles/${id}/download${query}`)).toMatchObject({
      status: 422,
      body: { code: "secret_unreadable" },
    });
  }
  expect(daemon.log).not.toContain("a cookie");
  await kernel.profiles.delete(id);
});

test("an archive that is gone from its place is told as such, and a damaged one is never answered as if it were whole", async () => {
  const { id } = await kernel.profiles.create({});
  const before = new Set(await archiveFiles());
  await save(id, randomBytes(5_000_000));
  const [path = ""] = (await archiveFiles()).filter((one) => !before.has(one));
  const bytes = await readFile(path);
  bytes.writeUInt8(bytes.readUInt8(3_000_000) ^ 1, 3_000_000);
  await chmod(path, 0o600);
  await writeFile(path, bytes);
  for (const format of ["tar", "tar.zst"] as const) {
    expect(await failed(kernel.profiles.download(id, { format }).then(bytesOf))).toBeInstanceOf(Error);
  }
  await rm(path);
  expect(await daemon.call(`GET /profiles/${id}/download`)).toMatchObject({
    status: 500,
    body: { code: "archive_missing" },
  });
  await kernel.profiles.delete(id);
});

test("clients that go away in the middle of a download leave no file open", async () => {
  const { id } = await kernel.profiles.create({});
  await save(id, randomBytes(40_000_000));
  const opened = async (): Promise<number> => {
    const targets = await Promise.all(
      (await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")),
    );
    return targets.filter((target) => target.startsWith(join(folder, "archives"))).length;
  };
  const leave = async (query: string): Promise<void> => {
    const gone = new AbortController();
    const reply = await fetch(`${daemon.url}/profiles/${id}/download${query}`, {
      headers: { authorization: `Bearer ${daemon.apiKey}` },
      signal: gone.signal,
    });
    await reply.body?.getReader().read();
    expect(await opened()).toBeGreaterThan(0);
    gone.abort();
  };
  for (const query of ["", "?format=tar"]) {
    await leave(query);
    await expect.poll(opened).toBe(0);
  }
  await Promise.all(Array.from({ length: 6 }, (_, at) => leave(at % 2 === 0 ? "" : "?format=tar")));
  await expect.poll(opened).toBe(0);
  expect((await bytesOf(await kernel.profiles.download(id, { format: "tar" }))).length).toBe(40_000_000);
  await kernel.profiles.delete(id);
});
