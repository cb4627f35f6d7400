import { mkdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openArchives } from "../../src/daemon/archives.js";
import { systemClock } from "../../src/base/clock.js";
import { type Config, openConfig } from "../../src/config/config.js";
import { DirectoryArchives } from "../../src/archive/directory-archives.js";
import { S3Archives } from "../../src/archive/s3-archives.js";
import { bytesOf, filesBelow, newDirectory, newFile } from "../support/archive/archive-bed.js";
import { ticksKey } from "../../src/store/redis/keys.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { until } from "../support/browser/chromium-until.js";
import { startDaemon } from "../support/daemon/daemon.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { type S3Server, startS3Server } from "../support/archive/s3-server.js";

let s3: S3Server;
let redis: TestRedis;
beforeAll(async () => {
  [s3, redis] = await Promise.all([startS3Server(), startRedis()]);
});
afterAll(() => Promise.all([s3.close(), redis.stop()]));

async function configured(
  archives: object,
  env: Record<string, string> = {},
): Promise<ReturnType<typeof openConfig>> {
  const directory = await newDirectory();
  await writeFile(
    join(directory, "config.json"),
    JSON.stringify({ data_dir: join(directory, "data"), archives }),
  );
  return openConfig({
    packageRoot: directory,
    env: { REMUDA_CONFIG: join(directory, "config.json"), ...env },
  });
}
async function opened(
  archives: object,
  env?: Record<string, string>,
): Promise<{ part: Awaited<ReturnType<typeof openArchives>>; config: Config }> {
  const config = await configured(archives, env);
  if (config.kind === "refused") throw new Error(config.faults.join());
  const part = await openArchives(config.config, { clock: systemClock, log: silentLog });
  onTestFinished(() => part.stops.run());
  return { part, config: config.config };
}

test("archives are kept in the data directory, or in the one that is named from the package's root", async () => {
  const file = await newFile();
  const usual = await opened({});
  await usual.part.archives.put(file.digest, file.path);
  expect(await filesBelow(join(usual.config.dataDir, "archives"))).toHaveLength(1);
  const { config } = await opened({ directory: "elsewhere/archives" });
  expect(config.archives.directory).toBe(join(config.dataDir, "../elsewhere/archives"));
});

test("where a bucket is named they are kept there; a node's cache and the staging are on its own disk", async () => {
  const { endpoint } = s3.settings;
  const { part, config } = await opened(
    { s3_bucket: s3.settings.bucket, s3_endpoint: endpoint, s3_path_style: true, s3_prefix: "daemon/" },
    { REMUDA_S3_ACCESS_KEY_ID: "S3RVER", REMUDA_S3_SECRET_ACCESS_KEY: "S3RVER" },
  );
  expect(part.archives).toBeInstanceOf(S3Archives);
  const file = await newFile();
  const staged = await part.staging.take(Readable.from([file.bytes]), { maxBytes: file.bytes.length });
  await part.archives.put(staged.digest, staged.path);
  await staged.discard();
  const { path, release } = await part.cache.take(file.digest);
  expect(path.startsWith(config.dataDir)).toBe(true);
  expect((await bytesOf(await part.archives.open(file.digest))).equals(file.bytes)).toBe(true);
  release();
});

test("half of what S3 needs is refused", async () => {
  const faultsOf = async (archives: object): Promise<readonly string[]> => {
    const config = await configured(archives);
    return config.kind === "refused" ? config.faults : [];
  };
  expect(await faultsOf({ s3_endpoint: "http://127.0.0.1:9000" })).toEqual([
    expect.stringContaining("needs archives.s3_bucket"),
  ]);
  expect(await faultsOf({ s3_bucket: "b", s3_access_key_id: "id" })).toEqual([
    expect.stringContaining("need each other"),
  ]);
});

test("a daemon deletes nothing that it has not long known to be unused, however old it looks", async () => {
  const directory = await newDirectory();
  const archives = new DirectoryArchives(directory, systemClock);
  const [old, fresh] = [await newFile(1000), await newFile(1000)];
  for (const { digest, path } of [old, fresh]) await archives.put(digest, path);
  await mkdir(join(directory, "coming"), { recursive: true });
  await writeFile(join(directory, "coming", "half"), "half");
  const before = await filesBelow(directory);
  const longAgo = Date.now() / 1000 - 7200;
  for (const path of [join(old.digest.slice(0, 2), old.digest.slice(2, 4), old.digest), "coming/half"])
    await utimes(join(directory, path), longAgo, longAgo);
  const daemon = await startDaemon({
    role: "control",
    redisUrl: redis.url,
    file: { archives: { directory, sweep_period_minutes: 1 } },
  });
  try {
    const client = redis.client();
    onTestFinished(() => client.disconnect());
    await until("the first sweep", async () => (await client.hget(ticksKey, "archives")) ?? undefined);
    expect(await filesBelow(directory)).toEqual(before);
  } finally {
    await daemon.stop();
  }
});
