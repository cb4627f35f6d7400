import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { type FileHandle, mkdir, mkdtemp, open, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { CannotStart } from "../../src/base/cannot-start.js";
import { systemClock } from "../../src/base/clock.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { type Config, openConfig } from "../../src/config/config.js";
import { lockDirectory } from "../../src/store/private/directory-lock.js";
import { apiKey, apiKeyFile, clusterSecret, encryptionKey, nodeId } from "../../src/config/data-directory.js";

let config: Config;
beforeEach(async () => {
  const packageRoot = await mkdtemp(join(tmpdir(), "remuda-test-kept-"));
  await writeFile(join(packageRoot, "c.json"), "{}");
  const opened = openConfig({ packageRoot, env: { REMUDA_CONFIG: "c.json", REMUDA_DATA_DIR: "data" } });
  if (opened.kind === "refused") throw new Error(opened.faults.join());
  config = opened.config;
});
afterEach(() => rm(join(config.dataDir, ".."), { recursive: true }));

test("the API key is drawn once, long, in a file only its owner reads", async () => {
  const key = await apiKey(config);
  expect(key.reveal()).toMatch(/^rk_[\w-]{43}$/);
  expect((await apiKey(config)).reveal()).toBe(key.reveal());
  expect((await stat(apiKeyFile(config))).mode & 0o777).toBe(0o600);
  expect((await stat(config.dataDir)).mode & 0o777).toBe(0o700);
});

test("many starts at once agree on one secret and leave nothing else", async () => {
  const secrets = await Promise.all(Array.from({ length: 20 }, () => clusterSecret(config)));
  expect(new Set(secrets.map((secret) => secret.reveal())).size).toBe(1);
  expect(await readdir(config.dataDir)).toEqual(["cluster-secret"]);
});

test("the encryption key is drawn once; one that is given is used", async () => {
  const drawn = await encryptionKey(config);
  expect((await encryptionKey(config)).reveal()).toBe(drawn.reveal());
  expect((await stat(join(config.dataDir, "encryption-key"))).mode & 0o777).toBe(0o600);
  const given = new Secret("an encryption key that is given");
  expect(await encryptionKey({ ...config, encryptionKey: given })).toBe(given);
});

test("a node keeps its name over restarts", async () => {
  expect(await nodeId(config)).toBe(await nodeId(config));
});

test("an emptied key file is reported, not used", async () => {
  await apiKey(config);
  await writeFile(apiKeyFile(config), "");
  await expect(apiKey(config)).rejects.toThrow("holds no usable secret");
  await writeFile(join(config.dataDir, "encryption-key"), "");
  await expect(encryptionKey(config)).rejects.toThrow(
    /holds no usable secret; .*what Redis keeps under it .* is lost/,
  );
});

test("what cannot be used ends a start with one line, without a stack", async () => {
  await mkdir(config.dataDir);
  await writeFile(apiKeyFile(config), "");
  await writeFile(join(config.dataDir, "node-id"), "no id\n");
  for (const read of [apiKey, nodeId]) {
    const error = await read(config).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(CannotStart);
    expect((error as Error).stack).toBe((error as Error).message);
  }
});

test("a key outlives a loss of power from its first use on, like what is encrypted under it", async () => {
  const synced = await watchSyncs((path) =>
    path === config.dataDir
      ? `its directory, ${existsSync(join(path, "encryption-key")) ? "with" : "without"} it`
      : path === dirname(config.dataDir)
        ? "the directory above"
        : `${basename(path)}, ${readFileSync(path, "utf8").trim().length} characters`,
  );
  // As a daemon starts.
  const lock = await lockDirectory(config.dataDir, systemClock);
  await encryptionKey(config);
  if (lock.kind === "locked") await lock.release();
  expect(synced.filter((what) => what !== "its directory, without it")).toEqual([
    "the directory above",
    expect.stringMatching(/^encryption-key\.[0-9a-f]+, 43 characters$/),
    "its directory, with it",
  ]);
});

/** Tells by `describe` each path that is synced, as it then is. The order is that of the syncs. */
async function watchSyncs(describe: (path: string) => string): Promise<readonly string[]> {
  const synced: string[] = [];
  const handle = await open(tmpdir());
  const handles = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const sync = handles.sync;
  const watch = vi.spyOn(handles, "sync").mockImplementation(function (this: FileHandle) {
    synced.push(describe(readlinkSync(`/proc/self/fd/${this.fd}`)));
    return sync.call(this);
  });
  onTestFinished(() => watch.mockRestore());
  return synced;
}
