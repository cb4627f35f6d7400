import { posix } from "node:path";
import type { Params } from "../cdp/command.js";
import { fileParams, type FileParameterKind } from "./file-parameters.js";
import { pass, refuseCommand, type Rule, type GateContext, type Verdict } from "./gate.js";
import { whyNotOpened } from "./internal-pages.js";

interface FileParam {
  readonly path: readonly string[];
  readonly treatment: Exclude<FileParameterKind, "harmless">;
}

const byMethod = new Map<string, FileParam[]>();
for (const [name, treatment] of Object.entries(fileParams)) {
  if (treatment === "harmless") continue;
  const [domain, command, ...path] = name.split(".");
  const method = `${domain}.${command}`;
  byMethod.set(method, [...(byMethod.get(method) ?? []), { path, treatment }]);
}

/**
 * Keeps clients away from files of the host: what they name has to lie in the browser's own directories, and
 * `file:` is never opened for them. No file is looked at; a client cannot make links in those directories.
 */
export const fileRules: Rule = ({ method, params }, context) => {
  let judged = params;
  for (const { path, treatment } of byMethod.get(method) ?? []) {
    const verdict = judge[treatment](judged, path, context);
    if (verdict.kind === "refuse") return verdict;
    if (verdict.kind === "rewrite") judged = verdict.params;
  }
  return judged === params ? pass : { kind: "rewrite", params: judged };
};

type Judge = (params: Params, path: readonly string[], context: GateContext) => Verdict;

const judge: Record<FileParam["treatment"], Judge> = {
  reads(params, path, { directories }) {
    const outside = texts(valueAt(params, path)).find(
      (file) => !isWithinAny(file, Object.values(directories)),
    );
    return outside === undefined
      ? pass
      : refuseCommand(`${path.join(".")} names a path outside the session's own directories`);
  },

  // Playwright's newContext always sends a directory of the machine the client runs on. Refusing that would
  // refuse Playwright, so downloads go where the session's downloads are, whatever was asked for. What is
  // Chromium's own default there is none for headless-shell, so the default is the session's, too.
  downloads(params, path, { directories }) {
    const chosen = { [path[0] ?? ""]: directories.downloads };
    if (params["behavior"] === "default")
      return { kind: "rewrite", params: { ...params, behavior: "allow", ...chosen } };
    const wanted = valueAt(params, path);
    if (typeof wanted !== "string" || isWithin(wanted, directories.downloads)) return pass;
    return { kind: "rewrite", params: { ...params, ...chosen } };
  },

  opens(params, path) {
    const why = texts(valueAt(params, path))
      .map(whyNotOpened)
      .find((reason) => reason !== undefined);
    return why === undefined ? pass : refuseCommand(`${path.join(".")}: ${why}`);
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
