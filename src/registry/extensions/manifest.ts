import { isRecord } from "../../base/is-record.js";
import { isTooDeep, mostJsonDepth } from "../../base/json-depth.js";
import { extensionIdOf, manifestKey, builtinExtensions } from "../../base/builtin-extensions.js";
import { type ManifestFields, fileFaults, shapeFaults } from "./manifest-fields.js";

/** What a manifest says, read but not checked. */
export type Manifest = ManifestFields;

type ManifestReading =
  | { readonly kind: "manifest"; readonly manifest: Manifest }
  | { readonly kind: "faulty"; readonly fault: string };

/** What the policy of our browsers refuses of an extension. */
export interface ManifestRules {
  readonly blockedPermissions: readonly string[];
}

/** Chromium's largest is of a few KiB; locales are files of their own. */
export const maxManifestBytes = 2 ** 20;
/** Each value is looked at several times, all on the event loop. */
const maxManifestValues = 50_000;

/**
 * Reads what Chromium 156 reads: a byte order mark and comments are fine, a comma after the last element is
 * not (Chromium 156, docs/chromium.md#extensions).
 */
export function parseManifest(text: string): ManifestReading {
  try {
    const manifest: unknown = JSON.parse(withoutComments(text.replace(/^\ufeff/, "")));
    if (isTooDeep(manifest))
      return { kind: "faulty", fault: `manifest.json: is nested deeper than ${mostJsonDepth}` };
    if (!hasAtMost(maxManifestValues, manifest))
      return { kind: "faulty", fault: `manifest.json: has more than ${maxManifestValues} values` };
    return isRecord(manifest)
      ? { kind: "manifest", manifest }
      : { kind: "faulty", fault: "manifest.json: is not an object" };
  } catch (error) {
    return {
      kind: "faulty",
      fault: `manifest.json: is not valid JSON: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

function hasAtMost(most: number, value: unknown): boolean {
  let left = most;
  const count = (one: unknown): void => {
    left -= 1;
    if (left >= 0 && typeof one === "object" && one !== null) Object.values(one).forEach(count);
  };
  count(value);
  return left >= 0;
}

/**
 * Finds the end of a text or a comment by how it begins; each match is as long as what it has passed, so that
 * everything is read once.
 */
const ends: Readonly<Record<string, RegExp>> = { '"': /\\[\s\S]|"/g, "//": /[\n\r]|$/g, "/*": /\*\/|$/g };

/** Texts are kept as they are; what is a comment becomes a space. */
function withoutComments(text: string): string {
  const kept: string[] = [];
  const opening = /"|\/\/|\/\*/g;
  let at = 0;
  for (let found = opening.exec(text); found; found = opening.exec(text)) {
    const end = endOf(text, found[0], opening.lastIndex);
    kept.push(text.slice(at, found.index), found[0] === '"' ? text.slice(found.index, end) : " ");
    opening.lastIndex = at = end;
  }
  return kept.join("") + text.slice(at);
}

function endOf(text: string, begin: string, from: number): number {
  const end = ends[begin] ?? /$/g;
  end.lastIndex = from;
  let found = end.exec(text);
  while (found?.[0].startsWith("\\")) found = end.exec(text);
  return found ? end.lastIndex : text.length;
}

/**
 * Why Chromium 156 under our policy would not load it, each for people; what it loads is never refused, but
 * for a manifest_version it does not know and the key of an extension of Chromium's own. `files` are the
 * paths beside the manifest.
 */
export function manifestFaults(
  manifest: Manifest,
  files: ReadonlySet<string>,
  rules: ManifestRules,
): readonly string[] {
  const faults = [
    ...identityFaults(manifest),
    ...policyFaults(manifest, rules),
    ...shapeFaults(manifest),
    ...fileFaults(manifest, files),
  ];
  return [
    ...faults.map((fault) => `manifest.json: ${fault}`),
    ...localeFaults(manifest, files),
    ...reservedFaults(files),
  ];
}

function identityFaults({ manifest_version, name, version, key }: Manifest): readonly string[] {
  return [
    ...(manifest_version === 3
      ? []
      : [
          `manifest_version: must be 3, the only one this Chromium loads; it is ${JSON.stringify(manifest_version) ?? "absent"}`,
        ]),
    ...(typeof name === "string" && name !== "" ? [] : ["name: must be a text that is not empty"]),
    ...(typeof version === "string" && isVersion(version)
      ? []
      : ["version: must be 1 to 4 whole numbers parted by dots, such as 1.0.2"]),
    ...(typeof key === "string" && builtinExtensions.has(extensionIdOf(manifestKey(key)))
      ? ["key: is of an extension that is part of Chromium, whose powers it would take"]
      : []),
  ];
}

/**
 * Chromium's own bound is that of 32 bits, whatever its message says (Chromium 156,
 * docs/chromium.md#extensions).
 */
const maxVersionPart = 2 ** 32 - 1;
const isVersion = (text: string): boolean =>
  /^(?:0|[1-9]\d*)(?:\.\d+){0,3}$/.test(text) &&
  text.split(".").every((part) => Number(part) <= maxVersionPart);

/** Permissions that are asked for later are refused then, by the browser. */
function policyFaults(manifest: Manifest, { blockedPermissions }: ManifestRules): readonly string[] {
  const blocked = permissionsOf(manifest).filter((permission) => blockedPermissions.includes(permission));
  return [
    ...blocked.map(
      (permission) =>
        `permissions: ${permission} is blocked here, since it opens ways past what holds the browser`,
    ),
    ...("app" in manifest ? ["app: apps are blocked here; only extensions and themes are loaded"] : []),
  ];
}

function permissionsOf({ permissions }: Manifest): readonly string[] {
  if (!Array.isArray(permissions)) return [];
  return permissions.flatMap((one: unknown) =>
    typeof one === "string" ? [one] : isRecord(one) ? Object.keys(one) : [],
  );
}

function localeFaults({ default_locale }: Manifest, files: ReadonlySet<string>): readonly string[] {
  const isLocalised = [...files].some((file) => file.startsWith("_locales/"));
  if (default_locale === undefined)
    return isLocalised
      ? ["manifest.json: default_locale: must be set where there is a directory _locales"]
      : [];
  if (typeof default_locale !== "string") return ["manifest.json: default_locale: must be a text"];
  const isThere = [default_locale, default_locale.replaceAll("-", "_")].some((locale) =>
    files.has(`_locales/${locale}/messages.json`),
  );
  return isThere
    ? []
    : [`_locales/${default_locale}/messages.json: is not in the archive, and default_locale names it`];
}

const ownReserved = new Set(["_locales", "_platform_specific"]);
function reservedFaults(files: ReadonlySet<string>): readonly string[] {
  const tops = new Set([...files].map((file) => file.split("/", 1)[0] ?? ""));
  return [...tops]
    .filter((top) => top.startsWith("_") && !ownReserved.has(top))
    .map((top) => `${top}: names that begin with _ are Chromium's own`);
}

const requests = new Set(["webRequest", "webRequestBlocking"]);

/**
 * Whether it can only do its work when it is installed by enterprise policy
 * (docs/extensions-and-profiles.md#installed-by-policy): it asks to stop requests, and brings what policy
 * installs from, an update.xml and a packed .crx.
 */
export const demandsPolicy = (manifest: Manifest, files: ReadonlySet<string>): boolean =>
  permissionsOf(manifest).some((permission) => requests.has(permission)) &&
  files.has("update.xml") &&
  [...files].some((file) => !file.includes("/") && file.endsWith(".crx"));
