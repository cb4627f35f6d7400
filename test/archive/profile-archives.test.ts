import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { RemudaError } from "../../src/base/errors.js";
import { newProfileId, type ProfileId } from "../../src/base/ids.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { type ArchiveCache, type Staging, TooLarge } from "../../src/archive/archives.js";
import { openCache } from "../../src/archive/cache.js";
import { DirectoryArchives } from "../../src/archive/directory-archives.js";
import type { ArchiveBackend } from "../../src/archive/kept-archives.js";
import { type KeptProfiles, makeProfileArchives, openFrom } from "../../src/archive/profile-archives.js";
import { S3Archives } from "../../src/archive/s3-archives.js";
import { openStaging } from "../../src/archive/staging.js";
import { StreamSeal } from "../../src/archive/stream-seal.js";
import { pipeThrough } from "../../src/archive/pipe-through.js";
import { decompress } from "../../src/archive/formats/zstd.js";
import { allOf, bytesOf, newDirectory } from "../support/archive/archive-bed.js";
import { sharedProfileStores } from "../support/archive/profile-stores.js";
import { until } from "../support/browser/chromium-until.js";

const maxBytes = 6_000_000;
const stores = sharedProfileStores();

const never = new AbortController().signal;
const kinds: readonly (readonly [string, (directory: string) => ArchiveBackend])[] = [
  ["a directory", (directory) => new DirectoryArchives(join(directory, "archives"), systemClock)],
  ["S3", (directory) => new S3Archives({ ...stores().s3.settings, prefix: `${directory.slice(-6)}/` })],
];

describe.each(kinds)("states of profiles in %s", (_kind, openArchives) => {
  let directory: string;
  let archives: ArchiveBackend;
  let staging: Staging;
  let cache: ArchiveCache;
  let states: KeptProfiles;
  let id: ProfileId;
  beforeEach(async () => {
    directory = await newDirectory();
    archives = openArchives(directory);
    staging = await openStaging(join(directory, "staging"));
    cache = await openCache({
      archives,
      directory: join(directory, "cache"),
      maxBytes: 2 ** 30,
      onFault: (error) => {
        throw error;
      },
    });
    states = statesUnder("the key of this deployment");
    id = newProfileId();
    await stores().profiles.create({ id, most: 10_000 });
  });
  const statesUnder = (
    key: string,
    profiles: Parameters<typeof makeProfileArchives>[0]["profiles"] = stores().profiles,
  ): KeptProfiles =>
    makeProfileArchives({
      profiles,
      archives,
      staging,
      maxBytes,
      clock: systemClock,
      seal: new StreamSeal(new Secret(key)),
      open: openFrom(cache),
    });
  const saved = (tar: Buffer): Promise<string> => states.save(id, Readable.from([tar]), { signal: never });
  const read = async (): Promise<Buffer | undefined> => {
    const tar = await states.open(id);
    return tar && bytesOf(tar);
  };

  test("what was saved is what is opened, the last save wins, and before it there is none", async () => {
    expect(await states.open(id)).toBeUndefined();
    expect(await states.open(newProfileId())).toBeUndefined();
    for (const tar of [randomBytes(5_000_000), randomBytes(10), Buffer.alloc(5_000_000), Buffer.alloc(0)]) {
      expect(await saved(tar)).toBe("committed");
      expect((await read())?.equals(tar)).toBe(true);
    }
    expect(await readdir(join(directory, "staging"))).toEqual([]);
  });

  test("what is kept is sealed, and opened compressed it is zstd", async () => {
    const tar = Buffer.from("the cookie of a session ".repeat(50_000));
    await saved(tar);
    const [kept] = await allOf(archives.list());
    expect(kept).toMatchObject({
      digest: (await stores().profiles.find(id))?.archive?.digest,
      sizeBytes: (await stores().profiles.find(id))?.archive?.sizeBytes,
    });
    expect(kept?.sizeBytes).toBeLessThan(tar.length / 20);
    const zstd = await states.openCompressed(id);
    expect(zstd && (await bytesOf(pipeThrough(zstd, decompress))).equals(tar)).toBe(true);
  });

  test("with another key it is unreadable, and for another profile it is damaged", async () => {
    await saved(randomBytes(100_000));
    await expect(statesUnder("the key of another deployment").open(id)).rejects.toMatchObject({
      code: "secret_unreadable",
    });
    await expect(statesUnder("the key of another deployment").openCompressed(id)).rejects.toMatchObject({
      code: "secret_unreadable",
    });
    const other = newProfileId();
    await stores().profiles.create({ id: other, most: 10_000 });
    const archive = (await stores().profiles.find(id))?.archive;
    if (!archive) throw new Error("nothing was saved");
    await stores().profiles.commit(other, archive);
    await expect(states.open(other)).rejects.toThrow("damaged");
  });

  test("one that is too large, fails, or is cut leaves the profile as it was and nothing in the staging", async () => {
    const tar = randomBytes(100_000);
    await saved(tar);
    const before = await stores().profiles.find(id);
    const endless = new Readable({
      read() {
        this.push(randomBytes(100_000));
      },
    });
    await expect(states.save(id, endless, { signal: never })).rejects.toThrow(TooLarge);
    expect(endless.destroyed).toBe(true);
    const failing = Readable.from(
      (async function* () {
        yield randomBytes(3_000_000);
        throw new Error("a file has gone");
      })(),
    );
    await expect(states.save(id, failing, { signal: never })).rejects.toThrow("a file has gone");
    const [stalling, stop] = [new PassThrough(), new AbortController()];
    const save = states.save(id, stalling, { signal: stop.signal });
    stalling.write(randomBytes(3_000_000));
    await until(
      "a file in the staging",
      async () => (await readdir(join(directory, "staging"))).length === 1,
    );
    stop.abort(new Error("it took too long"));
    await expect(save).rejects.toThrow("it took too long");
    await expect.poll(() => stalling.destroyed).toBe(true);
    expect(await stores().profiles.find(id)).toEqual(before);
    expect((await read())?.equals(tar)).toBe(true);
    expect(await readdir(join(directory, "staging"))).toEqual([]);
  });

  test("a Redis that is away when the state is there is waited for, until the save is given up", async () => {
    const { profiles } = stores();
    const saving = new AbortController();
    let asked = 0;
    const away = (times: number): KeptProfiles =>
      statesUnder("the key of this deployment", {
        find: (one) => profiles.find(one),
        async commit(one, archive) {
          asked += 1;
          if (asked <= times) throw new RemudaError("store_unavailable");
          return await profiles.commit(one, archive);
        },
      });
    const save = (times: number) =>
      away(times).save(id, Readable.from([Buffer.from("kept")]), { signal: saving.signal });
    expect(await save(2)).toBe("committed");
    expect([asked, String(await read())]).toEqual([3, "kept"]);
    const given = save(Infinity);
    await until("another try", () => asked > 4);
    saving.abort(new Error("the node stops"));
    await expect(given).rejects.toThrow();
    expect(await readdir(join(directory, "staging"))).toEqual([]);
  });

  test("a save that is given up ends at once, also where a Redis that was away has not answered yet", async () => {
    const saving = new AbortController();
    let [asked, packed] = [0, 0];
    const silent = statesUnder("the key of this deployment", {
      find: (one) => stores().profiles.find(one),
      async commit() {
        if ((asked += 1) === 1) throw new RemudaError("store_unavailable");
        return await new Promise(() => {});
      },
    });
    const given = silent.save(id, Readable.from([Buffer.from("kept")]), {
      signal: saving.signal,
      packed: () => void (packed += 1),
    });
    await until("another try", () => asked === 2);
    expect([packed, await readdir(join(directory, "staging"))]).toEqual([1, []]);
    saving.abort(new Error("the node stops"));
    await expect(given).rejects.toThrow("the node stops");
  });

  test("a save whose answer was lost is not made again over one that started from it", async () => {
    const { profiles } = stores();
    let asked = 0;
    const losing = statesUnder("the key of this deployment", {
      find: (one) => profiles.find(one),
      async commit(one, archive) {
        const done = await profiles.commit(one, archive);
        if ((asked += 1) > 1) return done;
        expect(String(await read())).toBe("older");
        await saved(Buffer.from("newer, made from older"));
        throw new RemudaError("store_unavailable");
      },
    });
    expect(await losing.save(id, Readable.from([Buffer.from("older")]), { signal: never })).toBe("committed");
    expect([asked, String(await read())]).toEqual([2, "newer, made from older"]);
  });

  test("of savers at once one wins whole", async () => {
    const tars = [randomBytes(2_000_000), randomBytes(3_000_000), randomBytes(1_000_000)];
    await Promise.all(tars.map(saved));
    const kept = await read();
    expect(tars.filter((tar) => kept?.equals(tar))).toHaveLength(1);
  });

  test("a profile that was deleted meanwhile is missing, and nothing is kept for it", async () => {
    await stores().profiles.remove(id);
    expect(await saved(randomBytes(1000))).toBe("missing");
    expect(await allOf(archives.list())).toEqual([]);
    expect(await readdir(join(directory, "staging"))).toEqual([]);
  });

  test("an archive that is gone fails at once, unless a later save has taken its place", async () => {
    await saved(randomBytes(1000));
    const first = (await stores().profiles.find(id))?.archive?.digest;
    if (!first) throw new Error("nothing was saved");
    await archives.remove(first);
    await expect(states.open(id)).rejects.toMatchObject({ code: "archive_missing" });
    const tar = randomBytes(1000);
    let asked = 0;
    const late = makeProfileArchives({
      archives,
      staging,
      maxBytes,
      clock: systemClock,
      seal: new StreamSeal(new Secret("the key of this deployment")),
      open: openFrom(cache),
      profiles: {
        commit: stores().profiles.commit.bind(stores().profiles),
        async find(which) {
          const found = await stores().profiles.find(which);
          if ((asked += 1) === 1) await saved(tar);
          return found;
        },
      },
    });
    const opened = await late.open(id);
    expect(opened && (await bytesOf(opened)).equals(tar)).toBe(true);
  });

  test("a reader that leaves half way lets go of the cache", async () => {
    const small = await openCache({
      archives,
      directory: join(directory, "cache"),
      maxBytes: 1,
      onFault: (error) => {
        throw error;
      },
    });
    const own = makeProfileArchives({
      profiles: stores().profiles,
      archives,
      staging,
      maxBytes,
      clock: systemClock,
      seal: new StreamSeal(new Secret("the key of this deployment")),
      open: openFrom(small),
    });
    await saved(randomBytes(5_000_000));
    const tar = await own.open(id);
    expect(await readdir(join(directory, "cache"))).toHaveLength(1);
    tar?.destroy();
    await expect.poll(() => readdir(join(directory, "cache"))).toEqual([]);
  });
});
