// A process that writes archives and is there to be killed: `archive-writer.mjs <compiled sources> <what> <JSON
// of its options>`. It says `ready` before it begins, and `done` each time that one is there.
import { join } from "node:path";
import { Readable } from "node:stream";
const [compiled, what, text] = process.argv.slice(2);
const options = JSON.parse(text);
const from = (path) => import(join(compiled, "src", path));
const { systemClock } = await from("base/clock.js");
const { Secret } = await from("base/crypto/secret.js");

async function openArchives() {
  if (options.s3) {
    const { S3Archives } = await from("archive/s3-archives.js");
    const { accessKeyId, secretAccessKey } = options.s3.credentials;
    return new S3Archives({
      ...options.s3,
      credentials: { accessKeyId: new Secret(accessKeyId), secretAccessKey: new Secret(secretAccessKey) },
    });
  }
  const { DirectoryArchives } = await from("archive/directory-archives.js");
  return new DirectoryArchives(join(options.directory, "archives"), systemClock);
}

async function openSaves(archives) {
  const { makeProfileArchives } = await from("archive/profile-archives.js");
  const { openStaging } = await from("archive/staging.js");
  const { StreamSeal } = await from("archive/stream-seal.js");
  const { RedisProfileStore } = await from("store/project/profile-store.js");
  const [{ connectAlone }, { ScriptStore }] = await Promise.all([
    from("store/redis/connect.js"),
    from("store/redis/redis.js"),
  ]);
  const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
  const store = new ScriptStore(
    connectAlone({
      url: options.redisUrl,
      isCluster: false,
      connectTimeoutMs: 2000,
      commandTimeoutMs: 10_000,
    }),
    log,
  );
  await store.open(new AbortController().signal);
  return makeProfileArchives({
    profiles: new RedisProfileStore(store, "default"),
    archives,
    staging: await openStaging(join(options.directory, "staging")),
    clock: systemClock,
    seal: new StreamSeal(new Secret(options.key)),
    maxBytes: 2 ** 40,
    open: (digest) => archives.open(digest),
  });
}

/** A state that tells whether it is whole: one letter, as often as every state has it. */
const stateOf = (round) =>
  Readable.from(
    (function* () {
      for (let part = 0; part < options.parts; part += 1) yield Buffer.alloc(2 ** 20, "abcdefgh"[round % 8]);
    })(),
  );

async function putAll(archives) {
  for (const { digest, path } of options.files) await archives.put(digest, path);
}

const archives = await openArchives();
const saves = what === "save" ? await openSaves(archives) : undefined;
process.send("ready");
for (let round = 0; ; round += 1) {
  await (saves
    ? saves.save(options.profile, stateOf(round), { signal: new AbortController().signal })
    : putAll(archives));
  process.send("done");
}
