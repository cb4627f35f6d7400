import { expect, test } from "vitest";
import { manifestFaults, parseManifest } from "../../../src/registry/extensions/manifest.js";
import { blockedPermissions, manifestCases, textOf } from "../../support/archive/manifest-corpus.js";

const faultsOf = (text: string, files: readonly string[] = []): readonly string[] => {
  const read = parseManifest(text);
  return read.kind === "faulty"
    ? [read.fault]
    : manifestFaults(read.manifest, new Set(["manifest.json", ...files]), { blockedPermissions });
};

test.each(manifestCases.map((one) => [one.what, one] as const))("%s", (_, one) => {
  const faults = faultsOf(textOf(one), one.files);
  expect(faults.join("; ")).toContain(one.fault ?? "");
  expect(faults).toHaveLength(one.fault === undefined ? 0 : 1);
});

test("every fault is told", () => {
  const faults = faultsOf(
    JSON.stringify({ manifest_version: 2, permissions: ["proxy", "dns"], icons: { 16: "i.png" } }),
  );
  expect(faults.map((fault) => fault.split(":")[1]?.trim())).toEqual([
    "manifest_version",
    "name",
    "version",
    "permissions",
    "permissions",
    "icons.16",
  ]);
});

test("what looks like a comment within a text is none, and a text may hold a quotation mark", () => {
  const read = parseManifest('{"a": "x // y", "b": "\\" /* z */", /* "c": 1, */ "d": "\\\\" // end\n}');
  expect(read).toEqual({ kind: "manifest", manifest: { a: "x // y", b: '" /* z */', d: "\\" } });
});

test("a text that is all quotation marks or comments is read in little time", () => {
  for (const text of [
    '"'.repeat(500_000),
    "/*".repeat(500_000),
    `${'"\\'.repeat(300_000)}`,
    "//".repeat(500_000),
  ])
    expect(parseManifest(text).kind).toBe("faulty");
});

test("what is nested deeper than Chromium reads is told as such, and what is not may be written again", () => {
  const nested = (depth: number): string =>
    `{"manifest_version":3,"name":"x","version":"1","a":${"[".repeat(depth)}${"]".repeat(depth)}}`;
  expect(faultsOf(nested(400_000))).toEqual(["manifest.json: is nested deeper than 199"]);
  expect(faultsOf(nested(199))).toEqual(["manifest.json: is nested deeper than 199"]);
  expect(faultsOf(nested(198))).toEqual([]);
});

// The key in chrome/browser/resources/pdf/manifest.json.
const viewerKey =
  "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDN6hM0rsDYGbzQPQfOygqlRtQgKUXMfnSjhIBL7LnReAVBEd7ZmKtyN2qmSasMl4HZpMhVe2rPWVVwBDl6iyNE/Kok6E6v6V3vCLGsOpQAuuNVye/3QxzIldzG/jQAdWZiyXReRVapOhZtLjGfywCvlWq7Sl/e3sbc0vWybSDI2QIDAQAB";

test.each([
  ["bare", viewerKey],
  [
    "as a PEM",
    `-----BEGIN PUBLIC KEY-----\n${viewerKey.replace(/.{64}/g, "$&\r\n")}\n-----END PUBLIC KEY-----\n`,
  ],
  ["as a PEM with text around", `-----BEGIN K EY-----KE\nY-----${viewerKey}-----END`],
])("the key of Chromium's PDF viewer, %s, is refused, and another is not", (_, key) => {
  const faults = (of: string): readonly string[] =>
    faultsOf(JSON.stringify({ manifest_version: 3, name: "x", version: "1", key: of }));
  expect(faults(key).join()).toContain("key: is of an extension that is part of Chromium");
  expect(faults(key.replace("DN6h", "DN6i"))).toEqual([]);
});

test("a manifest of more values than can be looked at in passing is refused", () => {
  const manifest = (count: number): string =>
    JSON.stringify({ manifest_version: 3, name: "x", version: "1", permissions: Array(count).fill("tabs") });
  expect(faultsOf(manifest(49_000))).toEqual([]);
  expect(faultsOf(manifest(50_000))).toEqual(["manifest.json: has more than 50000 values"]);
});
