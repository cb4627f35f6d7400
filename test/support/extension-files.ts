import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ExtensionDirectory } from "../../src/browser/chromium.js";

/** Marks each page it sees with its name, in an attribute of the document's root. */
const markedBy = (name: string): string => `document.documentElement.setAttribute("data-${name}", "here")`;

/** An extension with a content script and a worker, in a directory of its own. `manifest` changes what its manifest says. */
export async function writeExtension(parent: string, name: string, manifest: object = {}): Promise<ExtensionDirectory> {
  const path = join(parent, name);
  await mkdir(path, { recursive: true });
  const whole = {
    manifest_version: 3, name, version: "1", permissions: ["storage"], background: { service_worker: "worker.js" },
    content_scripts: [{ matches: ["<all_urls>"], js: ["content.js"], run_at: "document_start" }], ...manifest,
  };
  await Promise.all([
    writeFile(join(path, "manifest.json"), JSON.stringify(whole)),
    writeFile(join(path, "content.js"), markedBy(name)),
    writeFile(join(path, "worker.js"), "chrome.storage.local.set({ seen: 1 });"),
  ]);
  return { name, path };
}

/** Stops every request for `/ad`, by rules in a file of its own (declarativeNetRequest): Chromium indexes them when it loads it. */
export async function writeRules(parent: string, name: string): Promise<ExtensionDirectory> {
  const extension = await writeExtension(parent, name, {
    permissions: ["declarativeNetRequest"],
    declarative_net_request: { rule_resources: [{ id: "own", enabled: true, path: "rules.json" }] },
  });
  const rule = { id: 1, action: { type: "block" }, condition: { urlFilter: "/ad|", resourceTypes: ["xmlhttprequest"] } };
  await writeFile(join(extension.path, "rules.json"), JSON.stringify([rule]));
  return extension;
}

/** Chromium refuses it, for its manifest has no version. */
export const writeBrokenExtension = (parent: string, name: string): Promise<ExtensionDirectory> =>
  writeExtension(parent, name, { version: undefined });

/** The names of the extensions whose content scripts have run in a page, as an expression for it. */
export const marks = `document.documentElement.getAttributeNames().filter((name) => name.startsWith("data-")).map((name) => name.slice(5)).sort().join()`;
