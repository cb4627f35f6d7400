import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";

/** Only the daemon's own user may look. */
export const directoryMode = 0o700;

async function syncing(path: string, flags: string): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, flags);
    await handle.sync();
  } finally {
    await handle?.close();
  }
}

/** A file's bytes outlive a loss of power. */
export const syncFile = (path: string): Promise<void> => syncing(path, "r+");

/** A directory's names outlive a loss of power. */
export const syncDirectory = (path: string): Promise<void> => syncing(path, "r");

/** Makes a directory and those above it; all of them are durable. */
export async function makeDurableDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: directoryMode });
  if (first === undefined) return;
  const stop = dirname(first);
  for (let at = path; ; at = dirname(at)) {
    await syncDirectory(at);
    if (at === stop || at === dirname(at)) return;
  }
}
