import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const root = join(import.meta.dirname, "../..");
const helper = "src/egress/namespace/helper.mjs";

/** The sources as JavaScript in a directory of their own, for tests that need them in another process. */
export async function compileSources(
  project = "tsconfig.build.json",
): Promise<{ directory: string; remove: () => Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), "remuda-test-compiled-"));
  await symlink(join(root, "node_modules"), join(directory, "node_modules"));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const options = ["-p", join(root, project), "--noCheck", "--outDir", directory];
  await promisify(execFile)(process.execPath, [tsc, ...options]);
  // The compiler leaves aside what is not TypeScript.
  await copyFile(join(root, helper), join(directory, helper));
  return { directory, remove: () => rm(directory, { recursive: true }) };
}
