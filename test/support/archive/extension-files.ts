import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Chromium, ExtensionDirectory } from "../../../src/browser/chromium.js";
import { uploadDirectories } from "../../../src/browser/extensions/file-access.js";

/** Marks each page it sees with its name, in an attribute of the document's root. */
const markedBy = (name: string): string => `document.documentElement.setAttribute("data-${name}", "here")`;

const rooms = new WeakMap<Chromium, number>();
/** Where the browser, which runs, may be given its next extension. */
export function nextRoom(chromium: Chromium): string {
  const at = rooms.get(chromium) ?? 0;
  rooms.set(chromium, at + 1);
  return uploadDirectories(chromium.directories)[at] ?? "";
}

/**
 * An extension with a content script and a worker, in a directory of its own. `manifest` changes what its
 * manifest says.
 */
export const writeExtension = (
  parent: string,
  name: string,
  manifest: object = {},
): Promise<ExtensionDirectory> => writeInto(join(parent, name), name, manifest);

/** The same, in this very directory. */
export async function writeInto(
  path: string,
  name: string,
  manifest: object = {},
): Promise<ExtensionDirectory> {
  await mkdir(path, { recursive: true });
  const whole = {
    manifest_version: 3,
    name,
    version: "1",
    permissions: ["storage"],
    background: { service_worker: "worker.js" },
    content_scripts: [{ matches: ["<all_urls>"], js: ["content.js"], run_at: "document_start" }],
    ...manifest,
  };
  await Promise.all([
    writeFile(join(path, "manifest.json"), JSON.stringify(whole)),
    writeFile(join(path, "content.js"), markedBy(name)),
    writeFile(join(path, "worker.js"), "chrome.storage.local.set({ seen: 1 });"),
  ]);
  return { name, path };
}

/**
 * Stops every request for `/ad`, by rules in a file of its own (declarativeNetRequest): Chromium indexes them
 * when it loads it.
 */
export async function writeRules(path: string, name: string): Promise<ExtensionDirectory> {
  const extension = await writeInto(path, name, {
    permissions: ["declarativeNetRequest"],
    declarative_net_request: { rule_resources: [{ id: "own", enabled: true, path: "rules.json" }] },
  });
  const rule = {
    id: 1,
    action: { type: "block" },
    condition: { urlFilter: "/ad|", resourceTypes: ["xmlhttprequest"] },
  };
  await writeFile(join(extension.path, "rules.json"), JSON.stringify([rule]));
  return extension;
}

/** Chromium refuses it, for its manifest has no version. */
export const writeBrokenExtension = (parent: string, name: string): Promise<ExtensionDirectory> =>
  writeExtension(parent, name, { version: undefined });

/** The names of the extensions whose content scripts have run in a page, as an expression for it. */
export const marks = `document.documentElement.getAttributeNames().filter((name) => name.startsWith("data-")).map((name) => name.slice(5)).sort().join()`;
