import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Refusal, say } from "./say.mjs";
import { runWithProgress } from "./spawn.mjs";

function findLock(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8")).packages;
  } catch {
    return undefined;
  }
}

/**
 * Whether node_modules holds exactly what package-lock.json wants. npm writes `.package-lock.json` as its
 * last act, so an interrupted installation does not count; optional packages for other platforms are absent
 * from it. It says nothing of what somebody has removed since, so that is looked at as well.
 */
export function hasPackages(root) {
  const wanted = findLock(join(root, "package-lock.json"));
  const installed = findLock(join(root, "node_modules/.package-lock.json"));
  if (!wanted) throw new Refusal("package-lock.json cannot be read: this is no whole checkout.");
  if (!installed) return false;
  const isSame = ([path, { integrity, optional }]) =>
    path === "" || (installed[path] ? installed[path].integrity === integrity : optional === true);
  const isThere = (path) => wanted[path] !== undefined && existsSync(join(root, path, "package.json"));
  return Object.entries(wanted).every(isSame) && Object.keys(installed).every(isThere);
}

/** Installs the npm packages when they are absent or not those of package-lock.json. */
export async function ensurePackages(root) {
  if (hasPackages(root)) return;
  say("installing npm packages (npm ci)");
  const npm = process.env.npm_execpath;
  const program = npm?.endsWith("js") ? [process.execPath, npm] : ["npm"];
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=http"];
  const { code, lines, seconds } = await runWithProgress("npm", [...program, ...args], { cwd: root });
  if (code !== 0)
    throw new Refusal(`npm ci failed:\n${lines.filter((line) => !line.startsWith("npm http")).join("\n")}`);
  say(`npm packages installed in ${seconds}`);
}
