import type { Manifest } from "./manifest.js";
import { isRecord } from "../../base/is-record.js";

const hostLists: readonly string[] = [
  "permissions",
  "host_permissions",
  "optional_permissions",
  "optional_host_permissions",
];

/**
 * The manifest without what names files of the host; undefined where nothing of it does. Chromium lets an
 * unpacked extension read every file that it may read itself as soon as one of these patterns matches
 * `file:`, past the policy that closes it to pages (Chromium 156, docs/chromium.md#extensions). `<all_urls>`
 * does, and becomes what it means for the network.
 */
export function narrowManifest(manifest: Manifest): Manifest | undefined {
  const narrowed: Record<string, unknown> = { ...manifest };
  for (const name of hostLists)
    if (Array.isArray(manifest[name])) narrowed[name] = narrowList(manifest[name]);
  const { content_scripts: scripts } = manifest;
  if (Array.isArray(scripts))
    narrowed.content_scripts = scripts.map(narrowScript).filter((script) => script !== undefined);
  return JSON.stringify(narrowed) === JSON.stringify(manifest) ? undefined : narrowed;
}

/**
 * Does a pattern of it name files themselves, in the lists of a manifest or of its content scripts?
 * `<all_urls>` does not.
 */
export function namesFiles(manifest: Manifest): boolean {
  const { content_scripts: scripts } = manifest;
  const matches = Array.isArray(scripts)
    ? scripts.flatMap((script) => (isRecord(script) ? script.matches : []))
    : [];
  return [...hostLists.flatMap((name) => manifest[name]), ...matches].some(isOfFiles);
}

const isOfFiles = (pattern: unknown): boolean => typeof pattern === "string" && /^\s*file:/i.test(pattern);

const narrowList = (list: readonly unknown[]): readonly unknown[] => [
  ...new Set(list.flatMap(narrowPattern)),
];

function narrowPattern(pattern: unknown): readonly unknown[] {
  if (pattern === "<all_urls>") return ["*://*/*"];
  return isOfFiles(pattern) ? [] : [pattern];
}

/** Chromium refuses one that matches nothing; such a script had only files to run in. */
function narrowScript(script: unknown): unknown {
  if (!isRecord(script) || !Array.isArray(script.matches)) return script;
  const matches = narrowList(script.matches);
  return matches.length > 0 || script.matches.length === 0 ? { ...script, matches } : undefined;
}
