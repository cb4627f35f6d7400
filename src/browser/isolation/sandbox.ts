import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { runProgram } from "../run-program.js";

/** The one of Chromium's own sandboxes that is on. */
export type Sandbox = "namespace" | "setuid" | "none";

const checkLimitMs = 5_000;

/** The programs of `sandboxTrial`, which a private root has to show for it. */
export const trialPrograms = ["/usr/bin/unshare", "/usr/bin/true"];

/**
 * Asks the kernel for what Chromium's zygote asks for: a user namespace, and within it a process and a
 * network namespace. Ubuntu's AppArmor restriction, for one, grants the first and refuses the others.
 */
export const sandboxTrial = [
  "/usr/bin/unshare",
  "--user",
  "--map-root-user",
  "--pid",
  "--net",
  "--fork",
  "/usr/bin/true",
];

/** Finds the sandbox that a process of `uid` (null: our own uid) is granted where it has no private root. */
export async function findSandbox(executable: string | undefined, uid: number | null): Promise<Sandbox> {
  // macOS has a sandbox of its own that needs no privilege; there is nothing to check.
  if (process.platform !== "linux") return "namespace";
  const identity = uid === null ? [] : ["--reuid", `${uid}`, "--regid", `${uid}`, "--clear-groups"];
  const trial = await runProgram("/usr/bin/setpriv", ["--no-new-privs", ...identity, "--", ...sandboxTrial], {
    limitMs: checkLimitMs,
  });
  if (trial.succeeded) return "namespace";
  return executable !== undefined && (await hasSetuidHelper(executable)) ? "setuid" : "none";
}

async function hasSetuidHelper(executable: string): Promise<boolean> {
  const helper = await stat(join(dirname(executable), "chrome-sandbox")).catch(() => undefined);
  const setuidBit = 0o4000;
  return helper !== undefined && helper.uid === 0 && (helper.mode & setuidBit) !== 0;
}
