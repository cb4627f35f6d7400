import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkExtension } from "../../src/archive/formats/check-extension.js";
import { unpackExtension } from "../../src/archive/formats/unzip.js";
import { BadArchive } from "../../src/archive/formats/zip.js";
import { extensionZip, zipBytes, type ZipPart } from "../support/archive/zip-bytes.js";
import { limits, script, sharedUnpackBed, withScript } from "../support/archive/unpack-bed.js";

const { faultsOf, newPath, place, work } = sharedUnpackBed();

const link = 0o120777;
/** Large when packed, too. */
const noise = randomBytes(2 ** 20);
const hostile: readonly [string, readonly ZipPart[], string][] = [
  ["leads out", [{ name: "../evil.js" }], "leads out of the archive"],
  ["leads out deeper", [{ name: "a/../../evil.js" }], "leads out of the archive"],
  ["is .. alone", [{ name: ".." }], "leads out of the archive"],
  ["is absolute", [{ name: "/etc/evil" }], "has an absolute name"],
  ["is of a drive", [{ name: "C:/evil" }], "has an absolute name"],
  ["has a backslash", [{ name: "..\\evil" }], "has a backslash"],
  ["has an empty part", [{ name: "a//b" }], "has an empty part"],
  ["has a dot part", [{ name: "./b" }], "has an empty part"],
  ["is empty", [{ name: "" }], "has an empty part"],
  ["has a null", [{ name: "a\u0000.js" }], "has a control character"],
  ["has a line break", [{ name: "a\n.js" }], "has a control character"],
  ["is too long", [{ name: "x".repeat(256) }], "has too long a name"],
  ["is too long in all", [{ name: "x/".repeat(600) + "y" }], "has too long a name"],
  ["is too deep", [{ name: "x/".repeat(64) + "y" }], "is nested deeper than 64"],
  ["is a link", [{ name: "evil", content: "/etc/passwd", mode: link }], "is a link or a special file"],
  ["is a device", [{ name: "evil", mode: 0o20666 }], "is a link or a special file"],
  ["is a pipe", [{ name: "evil", mode: 0o10666 }], "is a link or a special file"],
  [
    "is a directory with content",
    [{ name: "d/", content: "x", mode: 0o40755 }],
    "is a directory by its name",
  ],
  ["is a directory by its mode", [{ name: "d", mode: 0o40755 }], "is a file by its name"],
  ["is there twice", [{ name: "a.js" }, { name: "a.js" }], "has the name of another"],
  ["differs by case", [{ name: "a.js" }, { name: "A.js" }], "has the name of another"],
  ["differs by composition", [{ name: "\u00e9.js" }, { name: "e\u0301.js" }], "has the name of another"],
  [
    "needs a directory where a file is",
    [{ name: "a" }, { name: "A/b" }],
    "needs a directory where a file is",
  ],
  ["is encrypted", [{ name: "a.js", flags: 1 }], "is encrypted"],
  ["is packed otherwise", [{ name: "a.js", method: 12 }], "is packed by method 12"],
  [
    "is called otherwise in its header",
    [{ name: "a.js", lies: { localName: "b.js" } }],
    "is called otherwise",
  ],
  ["has another checksum", [{ name: "a.js", content: "x", lies: { crc: 7 } }], "is damaged"],
  [
    "is larger than it says",
    [{ name: "a.js", content: "x".repeat(100), lies: { size: 10 } }],
    "unpacks to more than is said",
  ],
  [
    "is smaller than it says",
    [{ name: "a.js", content: "x", lies: { size: 10 } }],
    "unpacks to other than the 10 bytes",
  ],
  [
    "is large and larger than it says",
    [{ name: "a.js", content: noise, lies: { size: 500_000 } }],
    "too many bytes in the stream",
  ],
  [
    "is large and smaller than it says",
    [{ name: "a.js", content: noise, lies: { size: 2_000_000 } }],
    "not enough bytes in the stream",
  ],
  ["is large and has another checksum", [{ name: "a.js", content: noise, lies: { crc: 7 } }], "is damaged"],
  [
    "is large and no deflate",
    [{ name: "a.js", content: noise, lies: { packedSize: 300_000 } }],
    "is not a sound zip archive",
  ],
  ["is longer than the file", [{ name: "a.js", lies: { packedSize: 5000 } }], "is not a sound zip archive"],
  ["lies elsewhere", [{ name: "a.js", lies: { offset: 0xfffffff0 } }], "is not a sound zip archive"],
  [
    "is no deflate",
    [
      { name: "a.js", content: Buffer.alloc(50, 0xff), method: 0, lies: {} },
      { name: "b.js", content: "x", lies: { packedSize: 1 } },
    ],
    "is not a sound zip archive",
  ],
  [
    "says a size of 64 bits",
    [{ name: "a.js", content: "x", zip64: { size: 2n ** 63n, packedSize: 1n } }],
    "unpacks to",
  ],
  [
    "says a packed size of 64 bits",
    [{ name: "a.js", content: "x", zip64: { size: 1n, packedSize: 2n ** 63n } }],
    "is not a sound zip archive",
  ],
];

test.each(hostile)(
  "an entry that %s is refused, and nothing of the archive is unpacked",
  async (_, parts, fault) => {
    const bytes = extensionZip(parts);
    expect((await faultsOf(bytes)).join("; ")).toContain(fault);
    const into = newPath();
    await expect(unpackExtension(place(bytes), into, limits)).rejects.toBeInstanceOf(BadArchive);
    expect(existsSync(into)).toBe(false);
  },
);

test("a directory that is said to begin beyond what a number can hold is a fault like others", async () => {
  for (const beyond of [2n ** 64n - 1n, 2n ** 53n, 2n ** 40n]) {
    for (const end of [{ zip64End: beyond }, { zip64End: 0n, zip64At: beyond }])
      expect(await faultsOf(zipBytes([script], end))).toEqual([
        expect.stringContaining("is not a sound zip archive"),
      ]);
  }
});

test("what unpacks to too much is refused by what it says, and stopped by what it does", async () => {
  const zeros = Buffer.alloc(31 * 2 ** 20);
  expect(await faultsOf(extensionZip([{ name: "zeros", content: zeros }]))).toEqual([
    expect.stringContaining("at most 31457280 are allowed"),
  ]);
  expect(await faultsOf(extensionZip([{ name: "zeros", content: zeros.subarray(0, 11 * 2 ** 20) }]))).toEqual(
    ["unpacks to more than 100 times its size"],
  );
  const bomb = extensionZip([{ name: "zeros", content: zeros, lies: { size: 1000 } }]);
  expect(await faultsOf(bomb)).toEqual([expect.stringContaining("unpacks to more than is said")]);
  const many = Array.from({ length: 50 }, (_unused, at) => ({ name: `${at}.js` }));
  expect(await faultsOf(extensionZip(many))).toEqual(["has more than 50 files"]);
  // Entries that share their bytes: each is small, their sum is not.
  const shared = Array.from({ length: 40 }, (_unused, at) => ({
    name: `${at}.js`,
    content: at === 0 ? zeros.subarray(0, 2 ** 20) : "",
    lies: { size: 2 ** 20, offset: 0 },
  }));
  expect((await faultsOf(extensionZip(shared)))[0]).toContain("unpacks to");
});

/** A small generator of our own, so that a failure can be run again. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
function mutate(bytes: Buffer, random: (below: number) => number): Buffer {
  const changed = Buffer.from(bytes);
  const flips = 1 + random(6);
  for (let flip = 0; flip < flips; flip += 1)
    changed[random(changed.length)] = random(3) === 0 ? 0xff : random(256);
  return random(10) === 0 ? changed.subarray(0, random(changed.length)) : changed;
}

test(
  "whatever is done to its bytes, an archive is unpacked within its directory or refused, and nothing else is thrown",
  { timeout: 60_000 },
  async () => {
    const seed = Number(process.env["REMUDA_SEED"] ?? Math.floor(Math.random() * 2 ** 32));
    const random = randomFrom(seed);
    const inner = join(work, "fuzz");
    mkdirSync(inner);
    const good = extensionZip(
      [
        script,
        { name: "a/b/c.js", content: "x".repeat(300) },
        { name: "plain", content: "plain text", method: 0 },
        { name: "d/", mode: 0o40755, method: 0 },
      ],
      withScript,
    );
    const path = join(inner, "in.zip");
    const into = join(inner, "out");
    let sound = 0;
    for (let round = 0; round < 400; round += 1) {
      writeFileSync(path, mutate(good, random));
      const thrown = await unpackExtension(path, into, limits).then(
        () => undefined,
        (error: unknown) => error,
      );
      const checked = await checkExtension(path, limits);
      const where = `seed ${seed}, round ${round}: ${String(thrown)}`;
      expect(thrown === undefined || thrown instanceof BadArchive, where).toBe(true);
      expect(existsSync(into), where).toBe(thrown === undefined);
      if (thrown) expect(checked.kind, where).toBe("faulty");
      expect(readdirSync(inner).toSorted(), where).toEqual(thrown ? ["in.zip"] : ["in.zip", "out"]);
      rmSync(into, { recursive: true, force: true });
      sound += thrown ? 0 : 1;
    }
    expect(sound).toBeGreaterThan(0);
  },
);
