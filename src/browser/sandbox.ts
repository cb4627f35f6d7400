import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Isolation } from "./chromium.js";
import { findTool } from "./executable.js";
import { run } from "./run.js";

export type Sandbox = Isolation["sandbox"];

const checkLimitMs = 5_000;

/**
 * Which of Chromium's sandboxes this kernel allows a process of `uid` (null: our own uid). The check asks for what
 * Chromium's zygote asks for: a user namespace, and within it a pid and a network namespace. Ubuntu's AppArmor
 * restriction, for one, grants the first and refuses the others.
 */
export async function findSandbox(executable: string, uid: number | null): Promise<Sandbox> {
  // macOS has a sandbox of its own that needs no privilege; there is nothing to check.
  if (process.platform !== "linux") return "namespace";
  if (await allowsNamespaces(uid)) return "namespace";
  return (await hasSetuidHelper(executable)) ? "setuid" : "none";
}

async function allowsNamespaces(uid: number | null): Promise<boolean> {
  const setpriv = await findTool("setpriv");
  const unshare = await findTool("unshare");
  if (!setpriv || !unshare) return false;
  const identity = uid === null ? [] : ["--reuid", `${uid}`, "--regid", `${uid}`, "--clear-groups"];
  const trial = [unshare, "--user", "--map-root-user", "--pid", "--net", "--fork", "true"];
  return (await run(setpriv, ["--no-new-privs", ...identity, "--", ...trial], checkLimitMs)).succeeded;
}

async function hasSetuidHelper(executable: string): Promise<boolean> {
  const helper = await stat(join(dirname(executable), "chrome-sandbox")).catch(() => undefined);
  const setuidBit = 0o4000;
  return helper !== undefined && helper.uid === 0 && (helper.mode & setuidBit) !== 0;
}
