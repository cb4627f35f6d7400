import { realpath } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";

/** Whether a path is that directory or lies in it; neither may have links in it. */
const isWithin = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory.endsWith(sep) ? directory : `${directory}${sep}`);

/** Whether two paths are one, or one lies in the other. */
export const overlap = (one: string, other: string): boolean => isWithin(one, other) || isWithin(other, one);

/** Follows the links in as much of a path as exists. */
export async function settledPath(path: string): Promise<string> {
  const real = await realpath(path).catch(() => undefined);
  if (real !== undefined || dirname(path) === path) return real ?? path;
  return join(await settledPath(dirname(path)), basename(path));
}
