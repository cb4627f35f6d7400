import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

export const root = join(import.meta.dirname, "../..");

export interface Source {
  /** The path from src/, such as `pool/pool.ts`. */
  readonly path: string;
  /** The code without comments. */
  readonly code: string;
  /** The imported files of src/, such as `base/ids.ts`. */
  readonly files: readonly string[];
  /** The imported packages, such as `ioredis` and `node:fs/promises`. */
  readonly packages: readonly string[];
}

const withoutComments = (text: string): string =>
  text.replaceAll(/\/\*.*?\*\//gs, "").replaceAll(/(^|[\s;{(,])\/\/.*$/gm, "$1");

const importPattern = /(?:\bfrom\s*|\bimport\s*\(\s*|^\s*import\s*)["']([^"']+)["']/gm;

const packageOf = (name: string): string =>
  name.startsWith("node:")
    ? name
    : name
        .split("/")
        .slice(0, name.startsWith("@") ? 2 : 1)
        .join("/");

function parse(path: string): Source {
  const code = withoutComments(readFileSync(join(root, "src", path), "utf8"));
  const named = [...code.matchAll(importPattern)].map((match) => match[1] ?? "");
  const isOurs = (name: string): boolean => name.startsWith(".");
  return {
    path,
    code,
    files: named.filter(isOurs).map((name) => posix.join(posix.dirname(path), name).replace(/\.js$/, ".ts")),
    packages: named.filter((name) => !isOurs(name)).map(packageOf),
  };
}

export const sources: readonly Source[] = readdirSync(join(root, "src"), {
  recursive: true,
  encoding: "utf8",
})
  .filter((path) => path.endsWith(".ts"))
  .map((path) => parse(path.replaceAll("\\", "/")));

/** The folder of a path, or the file itself where it stands directly in src/. */
export const folderOf = (path: string): string => path.split("/")[0] ?? path;
