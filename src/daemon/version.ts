import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

interface Package {
  readonly version: string;
}

/** The nearest directory above with a package.json: the sources run from dist/src, and from src in tests. */
export function packageRootOf(directory: string): string {
  if (existsSync(join(directory, "package.json"))) return directory;
  const above = dirname(directory);
  if (above === directory) throw new Error("no package.json was found above the sources");
  return packageRootOf(above);
}

/** The version of the package at this root. */
export const versionOf = (packageRoot: string): string =>
  (JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as Package).version;
