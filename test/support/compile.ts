import { execFile } from "node:child_process";
import { chmod, cp, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { bundleDaemon } from "./bundle.js";
import { clearKilledRuns, newDirectory } from "./killed-runs.js";

const root = join(import.meta.dirname, "../..");
/** Everything that some test starts in a process of its own. */
const folders = ["src", "test/proof", "test/support"];

declare module "vitest" {
  interface ProvidedContext {
    readonly compiled: string;
  }
}

/**
 * Clears what killed runs have left, and compiles the sources once for all test files of a run: vitest's
 * globalSetup.
 */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  // Every project of the configuration inherits this, and is given what the root provides.
  if (!project.isRootProject()) return undefined;
  await clearKilledRuns();
  const directory = newDirectory("compiled");
  // Some tests start their process as another user.
  await chmod(directory, 0o755);
  for (const name of ["node_modules", "package.json"]) await symlink(join(root, name), join(directory, name));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const options = ["-p", join(root, "test/proof/tsconfig.json"), "--noCheck", "--outDir", directory];
  await promisify(execFile)(process.execPath, [tsc, ...options]);
  // The compiler leaves aside what is not TypeScript.
  const filter = (path: string): boolean => !path.endsWith(".ts");
  for (const folder of folders)
    await cp(join(root, folder), join(directory, folder), { recursive: true, filter });
  await bundleDaemon(directory);
  project.provide("compiled", directory);
  return async () => {
    await rm(directory, { recursive: true });
    // What lasted as long as the workers, which have ended, is left like that of a killed run.
    await clearKilledRuns();
  };
}
