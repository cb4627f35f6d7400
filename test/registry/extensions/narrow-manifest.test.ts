import { expect, test } from "vitest";
import { narrowManifest } from "../../../src/registry/extensions/narrow-manifest.js";

test("what names the host's files is left away, and all else stays", () => {
  const manifest = {
    manifest_version: 3,
    name: "reader",
    permissions: ["tabs", { fileSystem: ["write"] }, "<all_urls>"],
    host_permissions: ["<all_urls>", "*://*/*", "file:///*", "https://a.example/*"],
    optional_host_permissions: ["FILE:///etc/*"],
    content_scripts: [
      { matches: ["<all_urls>"], js: ["all.js"] },
      { matches: ["file:///*"], js: ["files.js"] },
      { matches: ["https://*/*"] },
    ],
  };
  expect(narrowManifest(manifest)).toEqual({
    manifest_version: 3,
    name: "reader",
    permissions: ["tabs", { fileSystem: ["write"] }, "*://*/*"],
    host_permissions: ["*://*/*", "https://a.example/*"],
    optional_host_permissions: [],
    content_scripts: [{ matches: ["*://*/*"], js: ["all.js"] }, { matches: ["https://*/*"] }],
  });
});

test("a manifest that names none is as it was", () => {
  expect(
    narrowManifest({
      name: "plain",
      host_permissions: ["*://*/*"],
      content_scripts: [{ matches: ["https://*/*"] }],
    }),
  ).toBeUndefined();
});
