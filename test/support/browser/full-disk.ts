import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../../../src/base/errno.js";

/** Fills the file system of a directory to its last page, and gives the path of the file that does it. */
export async function fillDisk(directory: string): Promise<string> {
  const path = join(directory, "filler");
  const file = await open(path, "a");
  try {
    while (await hasRoom(file, 2 ** 20));
    while (await hasRoom(file, 2 ** 12));
  } finally {
    await file.close();
  }
  return path;
}

async function hasRoom(file: FileHandle, bytes: number): Promise<boolean> {
  try {
    await file.appendFile(Buffer.alloc(bytes, "x"));
    return true;
  } catch (error) {
    if (errnoOf(error) === "ENOSPC") return false;
    throw error;
  }
}
