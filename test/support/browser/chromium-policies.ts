import { readdir, readFile } from "node:fs/promises";
import type { Chromium } from "../../../src/browser/chromium.js";

const isBrowser = (command: string, profile: string): boolean =>
  command.includes(`--user-data-dir=${profile}`) &&
  !command.includes("--type=") &&
  /^[^\0 ]*chromium[\0 ]/.test(command);

/**
 * The policies that a browser is shown: what its own process finds where Chromium looks. Chromium's page
 * about them is closed.
 */
export async function shownPolicies({ directories }: Chromium): Promise<Record<string, unknown>> {
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (isBrowser(command, directories.profile))
      return await readPolicies(`/proc/${pid}/root/etc/chromium/policies/managed`);
  }
  throw new Error("the browser has no process");
}

/** Where two files set the same policy, Chromium takes the one whose name sorts last. */
async function readPolicies(directory: string): Promise<Record<string, unknown>> {
  const files = (await readdir(directory)).filter((name) => name.endsWith(".json")).toSorted();
  const texts = await Promise.all(files.map((name) => readFile(`${directory}/${name}`, "utf8")));
  return Object.assign({}, ...texts.map((text) => JSON.parse(text) as object)) as Record<string, unknown>;
}
