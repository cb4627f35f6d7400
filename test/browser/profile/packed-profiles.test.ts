import { createHash } from "node:crypto";
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  statSync,
  writeFileSync,
  chownSync,
  lstatSync,
} from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { StartDirectories } from "../../../src/browser/chromium.js";
import { directoriesOf, makeDirectories } from "../../../src/browser/directories.js";
import { closeFiles } from "../../../src/browser/extensions/file-access.js";
import { mendProfile } from "../../../src/browser/profile/mend-profile.js";
import { packProfile } from "../../../src/browser/profile/pack-profile.js";
import { ProfileRejected, unpackProfile } from "../../../src/browser/profile/unpack-profile.js";
import { newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import { namesIn, tarOf } from "../../support/archive/tar-bytes.js";

const limits = { maxBytes: 2 ** 30, maxFiles: 10_000 };

const uid = process.getuid?.() === 0 ? 300_123 : null;
let room: StartDirectories;
let scratch: string;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "remuda-profile-"));
});
afterAll(() => rm(scratch, { recursive: true, force: true }));
const newRoom = async (signal: AbortSignal = new AbortController().signal): Promise<StartDirectories> => {
  const directories = directoriesOf(scratch, newBrowserId(onDemandPartition));
  await makeDirectories(directories, uid);
  room = { directories, uid, signal };
  return room;
};
const put = (path: string, bytes: string | Buffer = "held"): void => {
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, bytes);
  if (uid !== null)
    for (let at = path; at !== room.directories.profile; at = join(at, "..")) chownSync(at, uid, uid);
};
const found = (): string[] =>
  readdirSync(room.directories.profile, { recursive: true })
    .map((name) => `${name}`)
    .toSorted();

test("only plain files of the browser's own are packed: no link, no file that is elsewhere too, none of another's", async () => {
  const { directories } = await newRoom();
  const { profile } = directories;
  put(join(profile, "Default/Cookies"));
  put(join(profile, "Default/linked"));
  linkSync(join(profile, "Default/linked"), join(scratch, "elsewhere"));
  symlinkSync("/etc/passwd", join(profile, "Default/link"));
  symlinkSync("/etc", join(profile, "Default/links"));
  if (uid !== null) writeFileSync(join(profile, "Default/ours"), "the daemon's");
  put(join(profile, "Default/Web Data-journal"), "");
  put(join(profile, "Default/History-journal"), "hot");
  expect((await namesIn(await buffer(packProfile(room, limits)))).toSorted()).toEqual([
    "Default/Cookies",
    "Default/History-journal",
  ]);
});

test("what was packed is unpacked byte for byte, for the uid alone", async () => {
  await newRoom();
  const large = Buffer.alloc(3_000_001, "large");
  put(join(room.directories.profile, "Default/File System/large"), large);
  put(join(room.directories.profile, `Default/${"n".repeat(200)}/${"ü".repeat(100)}`), "deep");
  put(join(room.directories.profile, "empty"), "");
  const tar = await buffer(packProfile(room, limits));
  const before = found();
  await newRoom();
  put(join(room.directories.profile, "old"));
  await unpackProfile(Readable.from([tar]), room, limits);
  expect(found()).toEqual(before);
  const { size, mode, uid: owner } = statSync(join(room.directories.profile, "Default/File System/large"));
  expect({ size, mode: mode & 0o777, owner }).toEqual({
    size: large.length,
    mode: 0o600,
    owner: uid ?? process.getuid?.(),
  });
  expect(
    createHash("sha256")
      .update(await buffer(packProfile(room, limits)))
      .digest("hex"),
  ).toBe(createHash("sha256").update(tar).digest("hex"));
});

test("what has as many files as a profile may have is packed, and what has more is not", async () => {
  await newRoom();
  for (const name of ["one", "two", "three"]) put(join(room.directories.profile, "Default", name));
  const tar = await buffer(packProfile(room, { maxFiles: 3 }));
  await unpackProfile(Readable.from([tar]), await newRoom(), { maxBytes: 100, maxFiles: 3 });
  put(join(room.directories.profile, "Default/four"));
  // What is no state is not counted.
  put(join(room.directories.profile, "SingletonCookie"));
  await expect(buffer(packProfile(room, { maxFiles: 3 }))).rejects.toThrow("more than 3 files");
});

const replacements: [string, (profile: string) => void][] = [
  ["a link", (profile) => symlinkSync("elsewhere", profile)],
  ["a file", (profile) => writeFileSync(profile, "")],
];
// Whoever is not root can make no directory but its own.
if (uid !== null) replacements.push(["another's directory", (profile) => mkdirSync(profile)]);

test.each(replacements)(
  "where %s stands in the profile's place, it is not packed as an empty one",
  async (_, replace) => {
    const { directories } = await newRoom();
    renameSync(directories.profile, join(directories.root, "elsewhere"));
    replace(directories.profile);
    await expect(buffer(packProfile(room, limits))).rejects.toThrow();
  },
);

test("what lies deeper than is unpacked is not packed either", async () => {
  await newRoom();
  const name = (parts: number): string => Array.from({ length: parts }, () => "d").join("/");
  put(join(room.directories.profile, name(23), "deepest"));
  put(join(room.directories.profile, name(24), "deeper"));
  const tar = await buffer(packProfile(room, limits));
  expect(await namesIn(tar)).toEqual([`${name(23)}/deepest`]);
  await unpackProfile(Readable.from([tar]), await newRoom(), limits);
});

test.each([
  ["a name that climbs", [{ name: "../out" }]],
  ["a name that climbs within", [{ name: "Default/../../out" }]],
  ["an absolute name", [{ name: "/etc/remuda-out" }]],
  ["an empty part", [{ name: "Default//x" }]],
  ["a symbolic link", [{ name: "Default", type: "symlink", linkname: "/etc" }]],
  ["a hard link", [{ name: "Default/x", type: "link", linkname: "/etc/passwd" }]],
  ["a pipe", [{ name: "Default/x", type: "fifo" }]],
  ["a name of too many parts", [{ name: Array.from({ length: 40 }, () => "d").join("/") }]],
  ["too many files", [1, 2, 3, 4].map((at) => ({ name: `${at}` }))],
  ["too many bytes", [{ name: "x", body: "x".repeat(101) }]],
] as const)("%s is refused", async (__, entries) => {
  const tar = await tarOf(...entries);
  await newRoom();
  await expect(unpackProfile(Readable.from([tar]), room, { maxBytes: 100, maxFiles: 3 })).rejects.toThrow(
    ProfileRejected,
  );
  expect(() => lstatSync(join(room.directories.root, "out"))).toThrow("ENOENT");
});

test("what a crash and another browser have written down is mended: how it ended, its locks, its tabs, its extensions", async () => {
  const { directories } = await newRoom();
  const { profile } = directories;
  const kept = { name: "kept", path: join(directories.extensions, "kept") };
  const settings = {
    kept: { location: 4, path: kept.path },
    foreign: { location: 4, path: "/elsewhere" },
    own: { location: 5, path: "/usr/lib" },
  };
  const preferences = join(profile, "Default/Preferences");
  put(
    preferences,
    JSON.stringify({ profile: { exit_type: "Crashed", name: "held" }, extensions: { settings } }),
  );
  put(join(profile, "Local State"), JSON.stringify({ profile: { last_used: "Profile 1" } }));
  put(join(profile, "Default/Sessions/Session_1"));
  put(join(profile, "Default/Secure Preferences"), "no JSON");
  symlinkSync("elsewhere-1", join(profile, "SingletonLock"));
  await mendProfile(room, [kept]);
  expect(JSON.parse(readFileSync(preferences, "utf8"))).toEqual({
    profile: { exit_type: "Normal", exited_cleanly: true, name: "held" },
    extensions: { settings: { kept: settings.kept, own: settings.own } },
  });
  expect(JSON.parse(readFileSync(join(profile, "Local State"), "utf8"))).toMatchObject({
    profile: { last_used: "Default" },
  });
  expect(statSync(preferences).uid).toBe(uid ?? process.getuid?.());
  expect(found()).toEqual(["Default", "Default/Preferences", "Default/Secure Preferences", "Local State"]);
});

test("what is nested deeper than Chromium reads is left for it to replace", async () => {
  const { directories } = await newRoom();
  const deep = `{"a":${"[".repeat(400_000)}${"]".repeat(400_000)}}`;
  for (const name of ["Local State", "Default/Preferences", "Default/Secure Preferences"])
    put(join(directories.profile, name), deep);
  await mendProfile(room, []);
  await closeFiles(room, []);
  expect(JSON.parse(readFileSync(join(directories.profile, "Default/Preferences"), "utf8"))).toEqual({
    extensions: { settings: expect.any(Object) },
  });
});

test("a file twice, and a file where a directory is needed, are refused", async () => {
  await newRoom();
  await expect(
    unpackProfile(Readable.from([await tarOf({ name: "a" }, { name: "a" })]), room, limits),
  ).rejects.toThrow();
  await newRoom();
  await expect(
    unpackProfile(Readable.from([await tarOf({ name: "a" }, { name: "a/b" })]), room, limits),
  ).rejects.toThrow();
});

test("what is no state is not unpacked either, such as programs that Chromium would start for an extension", async () => {
  await newRoom();
  await unpackProfile(
    Readable.from([
      await tarOf(
        { name: "NativeMessagingHosts/x.json" },
        { name: "SingletonLock" },
        { name: "Default/Cookies" },
      ),
    ]),
    room,
    limits,
  );
  expect(found()).toEqual(["Default", "Default/Cookies"]);
});

test("a tar that is cut, one that fails and one that is given up are errors, and nothing hangs", async () => {
  const tar = await tarOf({ name: "a", body: "a".repeat(5_000) });
  await newRoom();
  await expect(unpackProfile(Readable.from([tar.subarray(0, 2_000)]), room, limits)).rejects.toThrow(
    "Unexpected end",
  );
  const failing = new Readable({ read: () => void failing.destroy(new Error("the archive is gone")) });
  await expect(unpackProfile(failing, await newRoom(), limits)).rejects.toThrow("the archive is gone");
  const abort = new AbortController();
  const waiting = unpackProfile(new Readable({ read: () => {} }), await newRoom(abort.signal), limits);
  setImmediate(() => abort.abort(new Error("given up")));
  await expect(waiting).rejects.toThrow("given up");
});
