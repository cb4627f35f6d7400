import { execFile } from "node:child_process";
import { access, cp, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ExtensionDirectory } from "../../../src/browser/chromium.js";

/**
 * Stops what has `stopped` in its path, marks pages, and asks for more permissions when a page is clicked.
 */
const worker = `
chrome.webRequest.onBeforeRequest.addListener(({ url }) => ({ cancel: url.includes("stopped") }), { urls: ["<all_urls>"] }, ["blocking"]);
chrome.runtime.onMessage.addListener((_, __, answer) => {
  const ask = (name) => chrome.permissions.request({ permissions: [name] }).then(String, String);
  Promise.all(["idle", "privacy", "nativeMessaging"].map(ask)).then((answers) => answer(answers.join(", ")));
  return true;
});`;
const content = `
document.documentElement.setAttribute("data-packed", "here");
addEventListener("click", () => chrome.runtime.sendMessage("ask").then((answer) => document.documentElement.setAttribute("data-asked", answer)));`;

const manifestOf = (given: object): string =>
  JSON.stringify({
    manifest_version: 3,
    name: "Stops",
    version: "1.2",
    permissions: ["webRequest", "webRequestBlocking"],
    optional_permissions: ["privacy", "nativeMessaging", "idle"],
    host_permissions: ["<all_urls>"],
    background: { service_worker: "worker.js" },
    content_scripts: [{ matches: ["<all_urls>"], js: ["content.js"] }],
    ...given,
  });

interface Packing {
  readonly chromium: string;
  /** Changes what the manifest says, of the packed one too. */
  readonly manifest?: object;
  /** Instead of its manifest, of the packed one alone. */
  readonly packed?: object;
  /** Runs after what its worker does anyhow. */
  readonly worker?: string;
}

/**
 * A directory as a zip of an extension that demands policy unpacks to: sources, update.xml and the packed
 * form.
 */
export async function packExtension({
  chromium,
  manifest = {},
  packed,
  worker: more = "",
}: Packing): Promise<{ path: string; remove(): Promise<void> }> {
  const root = await mkdtemp(join(tmpdir(), "remuda-test-packed-"));
  const [path, source] = [join(root, "unpacked"), join(root, "source")];
  await promisify(execFile)("mkdir", [source]);
  await Promise.all([
    writeFile(join(source, "worker.js"), worker + more),
    writeFile(join(source, "content.js"), content),
  ]);
  await writeFile(join(source, "manifest.json"), packed ? JSON.stringify(packed) : manifestOf(manifest));
  const switches = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-message-box",
    `--user-data-dir=${join(root, "profile")}`,
    `--pack-extension=${source}`,
  ];
  const isPacked = (): Promise<boolean> =>
    access(join(root, "source.crx")).then(
      () => true,
      () => false,
    );
  await promisify(execFile)(chromium, switches, {
    timeout: 60_000,
    env: { ...process.env, TMPDIR: root },
  }).catch(async (error: unknown) => {
    if (!(await isPacked())) throw error;
  });
  await cp(source, path, { recursive: true });
  await rename(join(root, "source.crx"), join(path, "stops.crx"));
  await writeFile(join(path, "manifest.json"), manifestOf(manifest));
  await writeFile(
    join(path, "update.xml"),
    "<?xml version='1.0'?><gupdate><app appid='x'><updatecheck codebase='http://127.0.0.1:10001/x.crx' version='1.2' /></app></gupdate>",
  );
  return { path, remove: () => rm(root, { recursive: true }) };
}

/** Puts the directory among a browser's own. */
export async function placeExtension(
  parent: string,
  name: string,
  from: string,
): Promise<ExtensionDirectory> {
  const path = join(parent, name);
  await cp(from, path, { recursive: true, mode: 0 });
  await promisify(execFile)("chmod", ["-R", "a+rX", path]);
  return { name, path };
}
