import { expect, test } from "vitest";
import { manifestFaults, parseManifest } from "../../src/registry/manifest.js";
import { blockedPermissions, manifestCases, textOf } from "../support/manifest-corpus.js";

const faultsOf = (text: string, files: readonly string[] = []): readonly string[] => {
  const read = parseManifest(text);
  return read.kind === "faulty" ? [read.fault] : manifestFaults(read.manifest, new Set(["manifest.json", ...files]), { blockedPermissions });
};

test.each(manifestCases.map((one) => [one.what, one] as const))("%s", (_, one) => {
  const faults = faultsOf(textOf(one), one.files);
  expect(faults.join("; ")).toContain(one.fault ?? "");
  expect(faults).toHaveLength(one.fault === undefined ? 0 : 1);
});

test("every fault is told", () => {
  const faults = faultsOf(JSON.stringify({ manifest_version: 2, permissions: ["proxy", "dns"], icons: { 16: "i.png" } }));
  expect(faults.map((fault) => fault.split(":")[1]?.trim())).toEqual(["manifest_version", "name", "version", "permissions", "permissions", "icons.16"]);
});

test("what looks like a comment within a text is none, and a text may hold a quotation mark", () => {
  const read = parseManifest('{"a": "x // y", "b": "\\" /* z */", /* "c": 1, */ "d": "\\\\" // end\n}');
  expect(read).toEqual({ kind: "manifest", manifest: { a: "x // y", b: '" /* z */', d: "\\" } });
});

test("a text that is all quotation marks or comments is read in little time", () => {
  for (const text of ['"'.repeat(500_000), "/*".repeat(500_000), `${'"\\'.repeat(300_000)}`, "//".repeat(500_000)]) expect(parseManifest(text).kind).toBe("faulty");
});
