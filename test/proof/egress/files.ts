import { chmod, chown, mkdir, mkdtemp, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Puts files into a new directory below `parent`, as its owner's. */
export async function writeFiles(parent: string, files: Readonly<Record<string, string>>): Promise<string> {
  await mkdir(parent, { recursive: true });
  const { uid, gid } = await stat(parent);
  const directory = await mkdtemp(join(parent, "files-"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  for (const path of [directory, ...Object.keys(files).map((name) => join(directory, name))]) {
    await chown(path, uid, gid);
    await chmod(path, 0o755);
  }
  return directory;
}
