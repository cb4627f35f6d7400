import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { pause, systemClock } from "../../src/base/clock.js";
import { type Digest, newProfileId, type ProfileId } from "../../src/base/ids.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { DirectoryArchives } from "../../src/archive/directory-archives.js";
import type { ArchiveBackend } from "../../src/archive/kept-archives.js";
import { makeProfileArchives } from "../../src/archive/profile-archives.js";
import { S3Archives } from "../../src/archive/s3-archives.js";
import { openStaging } from "../../src/archive/staging.js";
import { StreamSeal } from "../../src/archive/stream-seal.js";
import { makeSweep } from "../../src/archive/sweep.js";
import {
  allOf,
  bytesOf,
  digestOf,
  filesBelow,
  newDirectory,
  newFile,
  type SomeFile,
} from "../support/archive/archive-bed.js";
import { sharedProfileStores } from "../support/archive/profile-stores.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { until } from "../support/browser/chromium-until.js";
import { compiled } from "../support/compiled.js";

const key = "the key of this deployment";
const mebibyte = 2 ** 20;
/** Many processes are started one after the other. */
const limitMs = 400_000;
const stores = sharedProfileStores();

/** A process that writes until it is killed. */
async function startWriter(what: "put" | "save", options: object): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, "../support/archive/archive-writer.mjs"), [
    compiled,
    what,
    JSON.stringify(options),
  ]);
  onTestFinished(() => void child.kill("SIGKILL"));
  await told(child);
  return child;
}

/** Throws where the writer ends instead: it is there to be killed, and never ends by itself. */
async function told(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit").then(() => {
    throw new Error("the writer has ended by itself");
  });
  await Promise.race([once(child, "message"), ended]);
  ended.catch(() => undefined);
}

/** What a writer is told of a file. */
async function fileOf(mebibytes: number): Promise<Pick<SomeFile, "digest" | "path">> {
  const { digest, path } = await newFile(mebibytes * mebibyte);
  return { digest, path };
}
async function kill(child: ChildProcess): Promise<void> {
  child.kill("SIGKILL");
  if (child.signalCode === null) await once(child, "exit");
}

/** An hour later, as far as the sweep can tell. */
const sweepLater = (archives: ArchiveBackend, named: readonly Digest[]): Promise<void> =>
  makeSweep({
    archives,
    named: () => Promise.resolve(new Set(named)),
    unusedMs: -60_000,
    clock: systemClock,
    log: silentLog,
  })();

async function assertWhole(archives: ArchiveBackend): Promise<void> {
  for (const { digest, sizeBytes } of await allOf(archives.list())) {
    const bytes = await bytesOf(await archives.open(digest));
    expect([digestOf(bytes), bytes.length]).toEqual([digest, sizeBytes]);
  }
}

test(
  "a process killed in the middle of a put to a directory leaves no part of an archive, and what it has left is swept",
  async () => {
    const directory = await newDirectory();
    const archives = new DirectoryArchives(join(directory, "archives"), systemClock);
    const files = [await fileOf(80)];
    for (let rounds = 0; rounds < 4;) {
      const child = await startWriter("put", { directory, files });
      await until(
        "a file on its way",
        async () => (await readdir(join(directory, "archives", "coming")).catch(() => [])).length > 0,
      );
      await kill(child);
      await assertWhole(archives);
      // Where this process has had no turn for long it came too late for the middle.
      if ((await allOf(archives.list())).length === 0) {
        expect(await readdir(join(directory, "archives", "coming"))).toHaveLength(1);
        rounds += 1;
      }
      await archives.tidy(() => true);
      for (const { digest } of await allOf(archives.list())) await archives.remove(digest);
      expect(await filesBelow(directory)).toEqual([]);
    }
  },
  limitMs,
);

test(
  "killed at any moment, only whole archives are there",
  async () => {
    const directory = await newDirectory();
    const archives = new DirectoryArchives(join(directory, "archives"), systemClock);
    const files = await Promise.all(Array.from({ length: 6 }, () => fileOf(2)));
    for (let round = 0; round < 6; round += 1) {
      const child = await startWriter("put", { directory, files });
      await pause(systemClock, 12 * round);
      await kill(child);
      await assertWhole(archives);
      await sweepLater(archives, []);
      expect(await filesBelow(directory)).toEqual([]);
    }
  },
  limitMs,
);

test(
  "a process killed in the middle of a put to S3 leaves no archive, and its parts are swept",
  async () => {
    const archives = new S3Archives({ ...stores().s3.settings, prefix: "killed/" });
    onTestFinished(() => archives.close());
    const files = [await fileOf(80)];
    const credentials = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };
    const s3 = { ...stores().s3.settings, prefix: "killed/", credentials };
    for (;;) {
      const child = await startWriter("put", { files, s3 });
      await until("parts on their way", async () => (await stores().s3.uploads()).length > 0);
      await kill(child);
      await assertWhole(archives);
      const whole = await allOf(archives.list());
      if (whole.length === 0) break;
      // Where this process has had no turn for long it came too late for the middle.
      for (const { digest } of whole) await archives.remove(digest);
      await sweepLater(archives, []);
    }
    expect(await stores().s3.uploads()).toHaveLength(1);
    await sweepLater(archives, []);
    expect(await stores().s3.uploads()).toEqual([]);
  },
  limitMs,
);

test(
  "a process killed in the middle of a save leaves the profile with one whole state, and no orphan after the sweep",
  async () => {
    const directory = await newDirectory();
    const archives = new DirectoryArchives(join(directory, "archives"), systemClock);
    const profile = newProfileId();
    await stores().profiles.create({ id: profile, most: 1000 });
    const parts = 8;
    for (let round = 0; round < 7; round += 1) {
      const child = await startWriter("save", {
        directory,
        profile,
        parts,
        key,
        redisUrl: stores().redis.url,
      });
      if (round > 3) await told(child);
      if (round % 2 === 0)
        await until(
          "a file in the staging",
          async () => (await filesBelow(join(directory, "staging"))).length > 0,
        );
      await pause(systemClock, 9 * round);
      await kill(child);
      await assertWhole(archives);
      const staging = await openStaging(join(directory, "staging"));
      expect(await readdir(join(directory, "staging"))).toEqual([]);
      const named = (await stores().profiles.find(profile))?.archive?.digest;
      await sweepLater(archives, named ? [named] : []);
      expect((await allOf(archives.list())).map(({ digest }) => digest)).toEqual(named ? [named] : []);
      expect(await filesBelow(directory)).toHaveLength(named ? 1 : 0);
      if (named)
        await assertOneState(
          makeProfileArchives({
            profiles: stores().profiles,
            archives,
            staging,
            clock: systemClock,
            seal: new StreamSeal(new Secret(key)),
            maxBytes: 2 ** 30,
            open: (digest) => archives.open(digest),
          }),
          profile,
          parts,
        );
    }
    expect((await stores().profiles.find(profile))?.archive).toBeDefined();
  },
  limitMs,
);

async function assertOneState(
  states: ReturnType<typeof makeProfileArchives>,
  profile: ProfileId,
  parts: number,
): Promise<void> {
  const tar = await states.open(profile);
  const bytes = tar && (await bytesOf(tar));
  expect(bytes?.length).toBe(parts * mebibyte);
  expect(bytes?.equals(Buffer.alloc(parts * mebibyte, bytes[0]))).toBe(true);
}
