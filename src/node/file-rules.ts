import { posix } from "node:path";
import type { Params } from "./command.js";
import { fileParams, type Treatment } from "./file-params.js";
import { pass, refuse, type Rule, type Surroundings, type Verdict } from "./gate.js";

interface FileParam {
  readonly path: readonly string[];
  readonly treatment: Exclude<Treatment, "harmless">;
}

const byMethod = new Map<string, FileParam[]>();
for (const [name, treatment] of Object.entries(fileParams)) {
  if (treatment === "harmless") continue;
  const [domain, command, ...path] = name.split(".");
  const method = `${domain}.${command}`;
  byMethod.set(method, [...(byMethod.get(method) ?? []), { path, treatment }]);
}

/**
 * Keeps clients away from files of the host: what they name has to lie in the browser's own directories, and `file:` is
 * never opened for them. No file is looked at; a client cannot make links in those directories.
 */
export const fileRules: Rule = ({ method, params }, surroundings) => {
  let judged = params;
  for (const { path, treatment } of byMethod.get(method) ?? []) {
    const verdict = judge[treatment](judged, path, surroundings);
    if (verdict.kind === "refuse") return verdict;
    if (verdict.kind === "rewrite") judged = verdict.params;
  }
  return judged === params ? pass : { kind: "rewrite", params: judged };
};

type Judge = (params: Params, path: readonly string[], surroundings: Surroundings) => Verdict;

const judge: Record<FileParam["treatment"], Judge> = {
  reads(params, path, { directories }) {
    const outside = texts(valueAt(params, path)).find((file) => !isWithinAny(file, Object.values(directories)));
    return outside === undefined ? pass : refuse(`${path.join(".")} names a path outside the session's own directories`);
  },

  // Playwright's newContext always sends a directory of the machine the client runs on. Refusing that would refuse Playwright,
  // so downloads go where the session's downloads are, whatever was asked for.
  downloads(params, path, { directories }) {
    const wanted = valueAt(params, path);
    if (typeof wanted !== "string" || isWithin(wanted, directories.downloads)) return pass;
    return { kind: "rewrite", params: { ...params, [path[0] ?? ""]: directories.downloads } };
  },

  opens(params, path) {
    const urls = texts(valueAt(params, path));
    if (urls.some(isFileUrl)) return refuse(`${path.join(".")}: file URLs are not open to clients`);
    return urls.some(isOwnPage) ? refuse(`${path.join(".")}: the browser's own pages are not open to clients`) : pass;
  },
};

function valueAt(params: Params, path: readonly string[]): unknown {
  let value: unknown = params;
  for (const key of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Params)[key];
  }
  return value;
}

const texts = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).filter((text): text is string => typeof text === "string");

const isWithinAny = (path: string, directories: readonly string[]): boolean =>
  directories.some((directory) => isWithin(path, directory));

/** Lexically: absolute, and below the directory once `.` and `..` are resolved. */
export function isWithin(path: string, directory: string): boolean {
  if (!posix.isAbsolute(path) || path.includes("\0")) return false;
  const [inner, outer] = [posix.resolve(path), posix.resolve(directory)];
  return inner === outer || inner.startsWith(`${outer}/`);
}

/** Chromium's URL parser drops spaces and control characters; so does this, and more. */
// oxlint-disable-next-line no-control-regex
const tidied = (url: string): string => url.replace(/[\u0000-\u0020\u007f-\u00a0\u2000-\u200f\u2028-\u202f\ufeff]/g, "");

/** `file:`, also behind `view-source:` and the like. */
export const isFileUrl = (url: string): boolean => /^(?:[a-z][a-z0-9+.-]*:)*file:/i.test(tidied(url));

/**
 * Pages of Chromium itself. Those of its developer tools read any file for whoever scripts them, also when policy has put an error
 * page in their place, and chrome://inspect opens them (measured, 156); others end the browser or change its settings.
 */
export const isOwnPage = (url: string): boolean =>
  /^(?:[a-z][a-z0-9+.-]*:)*(?:(?:chrome|chrome-untrusted|chrome-search|devtools):|about:(?!(?:blank|srcdoc)?(?:$|[?#])))/i.test(tidied(url));
