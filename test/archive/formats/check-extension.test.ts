import { existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkExtension } from "../../../src/archive/formats/check-extension.js";
import { unpackExtension } from "../../../src/archive/formats/unzip.js";
import { crxBytes } from "../../support/archive/crx-bytes.js";
import { extensionZip, manifest, zipBytes, type ZipPart } from "../../support/archive/zip-bytes.js";
import { limits, script, sharedUnpackBed, withScript } from "../../support/archive/unpack-bed.js";

const { faultsOf, newPath, place, unpack, work } = sharedUnpackBed();

test("what a browser can load is sound, at the root and in the one folder there is", async () => {
  const atRoot = extensionZip(
    [
      script,
      { name: "empty.txt" },
      { name: "img/", mode: 0o40755, method: 0 },
      { name: "plain.txt", content: "plain", method: 0 },
    ],
    withScript,
  );
  expect(await checkExtension(place(atRoot), limits)).toEqual({ kind: "sound", demandsPolicy: false });
  const inFolder = zipBytes([
    { name: "mine/manifest.json", content: JSON.stringify({ ...manifest, ...withScript }) },
    { name: "mine/js/a.js", content: "1" },
    { name: "__MACOSX/mine/._a.js", content: "litter" },
    { name: ".DS_Store" },
    { name: "mine/_metadata/verified_contents.json", content: "[]" },
  ]);
  expect(await faultsOf(inFolder)).toEqual([]);
  expect((await unpack(atRoot)).files).toEqual({
    "manifest.json": expect.any(String),
    "js/a.js": script.content,
    "empty.txt": "",
    "plain.txt": "plain",
  });
  expect((await unpack(inFolder)).files).toEqual({ "manifest.json": expect.any(String), "js/a.js": "1" });
});

test("files are readable by every uid, whatever this process's mask", async () => {
  const before = process.umask(0o077);
  try {
    const { into } = await unpack(extensionZip([{ ...script, mode: 0o100777 }], withScript));
    const modes = ["", "js", "js/a.js", "manifest.json"].map(
      (path) => statSync(join(into, path)).mode & 0o7777,
    );
    expect(modes).toEqual([0o755, 0o755, 0o644, 0o644]);
  } finally {
    process.umask(before);
  }
});

test("names in UTF-8 are read as such whether the archive says so or not", async () => {
  for (const flags of [0x800, 0])
    expect(
      Object.keys((await unpack(extensionZip([{ name: "größe.js", content: "1", flags }]))).files),
    ).toContain("größe.js");
});

test("it has to be a zip with a manifest where one belongs", async () => {
  expect(await faultsOf(Buffer.from("no zip"))).toEqual([
    expect.stringContaining("is not a sound zip archive"),
  ]);
  expect(await faultsOf(Buffer.alloc(0))).toEqual([expect.stringContaining("is not a sound zip archive")]);
  expect(await faultsOf(extensionZip([script]).subarray(0, -30))).toEqual([
    expect.stringContaining("is not a sound zip archive"),
  ]);
  const noManifest = [expect.stringContaining("has no manifest.json")];
  expect(await faultsOf(zipBytes([]))).toEqual(noManifest);
  expect(await faultsOf(zipBytes([script]))).toEqual(noManifest);
  expect(await faultsOf(zipBytes([{ name: "a/manifest.json", content: "{}" }, { name: "b/x.js" }]))).toEqual(
    noManifest,
  );
  expect(await faultsOf(zipBytes([{ name: "a/b/manifest.json", content: "{}" }]))).toEqual(noManifest);
  expect(await faultsOf(zipBytes([{ name: "manifest.json", content: "x".repeat(2 ** 20 + 1) }]))).toEqual([
    "manifest.json: is larger than 1048576 bytes",
  ]);
});

test("where there are very many faults only the first are listed", async () => {
  const faults = await faultsOf(extensionZip(Array.from({ length: 45 }, (_, at) => ({ name: `../${at}` }))));
  expect(faults.length).toBe(21);
  expect(faults.at(-1)).toBe("25 more faults");
  const icons = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [at + 1, "x".repeat(500)]));
  const long = await faultsOf(extensionZip([], { icons }));
  expect([long.length, long[0]?.length, long.at(-1)]).toEqual([21, 301, "980 more faults"]);
});

test("it is unpacked into a directory of its own only, and what was there stays", async () => {
  const path = place(extensionZip([script], withScript));
  const [taken, outside, linked] = [join(work, "taken"), join(work, "outside"), join(work, "linked")];
  mkdirSync(taken);
  mkdirSync(outside);
  writeFileSync(join(taken, "mine"), "1");
  symlinkSync(outside, linked);
  for (const into of [taken, linked])
    await expect(unpackExtension(path, into, limits)).rejects.toThrow(/EEXIST/);
  expect([readdirSync(taken), readdirSync(outside)]).toEqual([["mine"], []]);
  await expect(checkExtension(join(work, "none.zip"), limits)).rejects.toThrow(/ENOENT/);
});

test("an extension that can only work by enterprise policy is recognised", async () => {
  const packed: readonly ZipPart[] = [
    { name: "update.xml", content: "<x/>" },
    { name: "own.crx", content: crxBytes(extensionZip([])) },
  ];
  const demands = async (parts: readonly ZipPart[], permissions: readonly string[]) => {
    const checked = await checkExtension(place(extensionZip(parts, { permissions })), limits);
    return checked.kind === "sound" ? checked.demandsPolicy : checked.faults;
  };
  expect(await demands(packed, ["webRequestBlocking"])).toBe(true);
  expect(await demands(packed, ["webRequest"])).toBe(true);
  expect(await demands(packed, ["tabs"])).toBe(false);
  expect(await demands(packed.slice(1), ["webRequest"])).toBe(false);
  expect(await demands(packed.slice(0, 1), ["webRequest"])).toBe(false);
  expect(await demands(packed, ["proxy"])).toEqual([expect.stringContaining("proxy is blocked here")]);
});

test("where browsers see the host's files, an extension that may come to files is not unpacked, and any other is", async () => {
  const into = newPath();
  const rules = { ...limits, seesHostFiles: true };
  for (const asked of [
    { permissions: ["downloads"] },
    { optional_permissions: ["downloads"] },
    { permissions: ["pageCapture"] },
  ]) {
    await expect(unpackExtension(place(extensionZip([], asked)), into, rules)).rejects.toThrow(
      /see the host's files/,
    );
    expect(existsSync(into)).toBe(false);
  }
  await unpackExtension(
    place(
      extensionZip([script], { ...withScript, permissions: ["storage"], host_permissions: ["<all_urls>"] }),
    ),
    into,
    rules,
  );
  expect(existsSync(join(into, "js/a.js"))).toBe(true);
});
