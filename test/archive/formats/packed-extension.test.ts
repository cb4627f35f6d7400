import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { checkExtension } from "../../../src/archive/formats/check-extension.js";
import { unpackExtension } from "../../../src/archive/formats/unzip.js";
import { crxBytes } from "../../support/archive/crx-bytes.js";
import { extensionZip, zipBytes, type ZipPart } from "../../support/archive/zip-bytes.js";

const work = mkdtempSync(join(tmpdir(), "remuda-crx-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));
const limits = { maxFiles: 20, maxUnpackedBytes: 20 * 2 ** 20, blockedPermissions: ["proxy"] };
let count = 0;

const demanding = { permissions: ["webRequest"] };
const inner = extensionZip([], demanding);
const update: ZipPart = { name: "update.xml", content: "<x/>" };
const outer = (crx: Buffer, more: readonly ZipPart[] = []): Buffer =>
  extensionZip([update, { name: "own.crx", content: crx }, ...more], demanding);

/** What is said of it when it is uploaded, and what became of it when it was to be unpacked for a browser. */
async function bothOf(bytes: Buffer): Promise<{ faults: readonly string[]; thrown: string; left: boolean }> {
  count += 1;
  const [path, into] = [join(work, `${count}.zip`), join(work, `${count}`)];
  writeFileSync(path, bytes);
  const checked = await checkExtension(path, limits);
  const thrown = await unpackExtension(path, into, limits).then(
    () => "",
    (error: Error) => error.message,
  );
  expect(readdirSync(work).filter((name) => name.endsWith(".packed"))).toEqual([]);
  return { faults: checked.kind === "faulty" ? checked.faults : [], thrown, left: existsSync(into) };
}

test("a packed extension that its key has signed and that asks for nothing else is taken as it is", async () => {
  expect(
    await bothOf(outer(crxBytes(extensionZip([], { ...demanding, host_permissions: ["<all_urls>"] })))),
  ).toEqual({ faults: [], thrown: "", left: true });
});

const another = Buffer.alloc(16, 7);
const bomb = extensionZip([{ name: "zeros", content: Buffer.alloc(19 * 2 ** 20) }], demanding);
test.each<[string, Buffer, RegExp]>([
  [
    "names files in its hosts",
    crxBytes(extensionZip([], { ...demanding, host_permissions: ["file:///*"] })),
    /names files of the host/,
  ],
  [
    "may ask for files later",
    crxBytes(extensionZip([], { ...demanding, optional_host_permissions: [" FILE:///etc/*"] })),
    /names files of the host/,
  ],
  [
    "runs scripts in files",
    crxBytes(
      extensionZip([{ name: "a.js", content: "" }], {
        ...demanding,
        content_scripts: [{ matches: ["file:///*"], js: ["a.js"] }],
      }),
    ),
    /names files of the host/,
  ],
  ["has no manifest", crxBytes(zipBytes([{ name: "a", content: "a" }])), /not valid JSON/],
  ["is an app", crxBytes(extensionZip([], { ...demanding, app: {} })), /apps are blocked/],
  [
    "leads out of its archive",
    crxBytes(extensionZip([{ name: "../../outside", content: "x" }], demanding)),
    /leads out of the archive/,
  ],
  [
    "has a link",
    crxBytes(extensionZip([{ name: "link", content: "/etc/passwd", mode: 0o120777 }], demanding)),
    /is a link/,
  ],
  ["is a bomb", crxBytes(bomb), /unpacks to more than 100 times its size/],
  [
    "has too many files",
    crxBytes(
      extensionZip(
        Array.from({ length: 30 }, (_, at) => ({ name: `${at}`, content: "" })),
        demanding,
      ),
    ),
    /more than 20 files/,
  ],
  [
    "is signed for other content",
    crxBytes(inner, { signed: extensionZip([], {}) }),
    /a signature that does not fit/,
  ],
  ["is named for another key", crxBytes(inner, { id: another }), /not signed by the key that its id names/],
  ["is no packed extension", Buffer.from("x"), /is not a packed extension/],
  ["has no zip", crxBytes(Buffer.from("no zip")), /has no zip archive/],
])(
  "one that %s is refused, when it is uploaded and when it is unpacked, and nothing is left",
  async (_, crx, reason) => {
    const { faults, thrown, left } = await bothOf(outer(crx));
    expect([faults.join("; "), thrown, left]).toEqual([
      expect.stringMatching(reason),
      expect.stringMatching(reason),
      false,
    ]);
    expect(thrown).toMatch(/^own\.crx: /);
  },
);

test("one that asks for what is blocked is refused when it is uploaded, by policy otherwise", async () => {
  const { faults } = await bothOf(
    outer(crxBytes(extensionZip([], { permissions: ["webRequest", "proxy"] }))),
  );
  expect(faults).toEqual([expect.stringContaining("proxy is blocked here")]);
});

test("two packed ones are refused: it would not be clear which is installed", async () => {
  expect(
    await bothOf(outer(crxBytes(inner), [{ name: "another.crx", content: crxBytes(inner) }])),
  ).toMatchObject({ faults: [expect.stringContaining("2 packed extensions")], left: false });
});

test("a .crx of an extension that policy does not install is a file like others", async () => {
  expect(await bothOf(extensionZip([{ name: "own.crx", content: "x" }], demanding))).toEqual({
    faults: [],
    thrown: "",
    left: true,
  });
});

test("of many faults of a packed extension's manifest as many are told as a person reads", async () => {
  const js = Array.from({ length: 10_000 }, (_, at) => `${at}.js`);
  const crx = crxBytes(
    extensionZip([], { ...demanding, content_scripts: [{ matches: ["<all_urls>"], js }] }),
  );
  const { faults, left } = await bothOf(outer(crx));
  expect(faults.length).toBeLessThan(30);
  expect(faults.join()).toContain("more faults");
  expect(left).toBe(false);
});
