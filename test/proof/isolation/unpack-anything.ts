import { execFile } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { promisify } from "node:util";
import type { ZipPart } from "../../support/archive/zip-bytes.js";
import { asUser } from "./programs.js";

export const symbolicLink = 0o120777;

/** An archive's entries that are files as they are named. */
export const partsOf = (files: Readonly<Record<string, string | Buffer>>): readonly ZipPart[] =>
  Object.entries(files).map(([name, content]) => ({ name, content }));

/** Unpacks as one does who trusts an archive: links are made, and names lead where they say. */
export async function unpackAnything(entries: readonly ZipPart[], into: string): Promise<void> {
  for (const { name, content = "", mode } of entries) {
    const path = isAbsolute(String(name)) ? String(name) : join(into, String(name));
    await mkdir(dirname(path), { recursive: true });
    if (mode === symbolicLink) await symlink(String(content), path);
    else await writeFile(path, content);
  }
}

const archiveLimitBytes = 2 ** 28;

/** Packs a directory as one does who trusts what lies there: what links lead to is taken. */
export async function archiveAnything(directory: string, uid: number): Promise<Buffer> {
  const [program = "tar", ...args] = [
    ...asUser(uid),
    "tar",
    "--dereference",
    "--ignore-failed-read",
    "-C",
    directory,
    "-cf",
    "-",
    ".",
  ];
  // A directory that is still in use is packed all the same; tar only says so.
  return await promisify(execFile)(program, args, { encoding: "buffer", maxBuffer: archiveLimitBytes }).then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: Buffer }) => stdout,
  );
}
