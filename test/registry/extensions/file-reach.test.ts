import { expect, test } from "vitest";
import { findFileReach } from "../../../src/registry/extensions/file-reach.js";

test.each([
  [{ permissions: ["downloads", "tabs"] }, ["downloads"]],
  [{ optional_permissions: ["downloads.open"] }, ["downloads.open"]],
  [
    { permissions: [{ fileSystem: ["write"] }, "fileSystemProvider", "fileBrowserHandler"] },
    ["fileSystem", "fileSystemProvider", "fileBrowserHandler"],
  ],
  [
    { permissions: ["nativeMessaging", "nativeMessaging", "pageCapture"] },
    ["nativeMessaging", "pageCapture"],
  ],
  [{ host_permissions: ["file:///*"] }, ["file"]],
  [{ content_scripts: [{ matches: ["file:///home/*"] }] }, ["file"]],
  [{ file_handlers: [] }, ["file_handlers"]],
  [
    {
      permissions: ["tabs", "scripting", "storage", "constructor", 7, null],
      host_permissions: ["<all_urls>"],
    },
    [],
  ],
  [{ permissions: "downloads" }, ["downloads"]],
  [{}, []],
])("%j reaches files by %j", (manifest, names) =>
  expect(findFileReach(manifest).map((reason) => reason.split(":")[0])).toEqual(names),
);
