import { chmod, copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** light-chromium.sh where browsers, which have uids of their own, reach it. */
export async function makeLightChromium(): Promise<{ readonly executable: string; remove(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), "remuda-bench-light-"));
  const executable = join(directory, "chromium");
  await copyFile(new URL("light-chromium.sh", import.meta.url), executable);
  await Promise.all([chmod(directory, 0o755), chmod(executable, 0o755)]);
  return { executable, remove: () => rm(directory, { recursive: true }) };
}
