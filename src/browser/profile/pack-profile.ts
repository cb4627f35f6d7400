import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, open, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { Readable } from "node:stream";
import { pack, type Pack } from "tar-stream";
import type { KeptWorkspace } from "../chromium.js";
import { isState, isStateFile, mostParts } from "./profile-state.js";

const chunkBytes = 2 ** 20;

interface PackLimits {
  readonly maxFiles: number;
}
type Packed = Pick<KeptWorkspace, "directories" | "uid">;

/**
 * Packs the state in the user-data directory of an ended browser as a tar. The browser may have put anything
 * there: only regular files of its own uid that have no other name are taken, and no link is followed.
 * Directories appear only in the names of files. The stream fails where a file cannot be read, or where
 * there are more than `unpackProfile` takes: a profile that no browser could start from is not saved. It
 * fails too where the user-data directory itself has gone or is not the browser's.
 */
export function packProfile({ directories, uid }: Packed, { maxFiles }: PackLimits): Readable {
  const tar = pack();
  const owner = uid ?? process.getuid?.() ?? 0;
  const count = fileCounter(maxFiles);
  packAll(tar, { path: directories.profile, name: "", depth: 0, owner, count }).then(
    () => tar.finalize(),
    (error: unknown) => tar.destroy(asError(error)),
  );
  // tar-stream's own streams lack what Node.js's have, such as async iteration that ends them.
  return Readable.from(tar, { objectMode: false, highWaterMark: chunkBytes });
}

const asError = (error: unknown): Error =>
  error instanceof Error ? error : new Error("the profile could not be packed", { cause: error });

/** Its calls throw from the first file on that is one too many. */
function fileCounter(maxFiles: number): () => void {
  let files = 0;
  return () => {
    files += 1;
    if (files > maxFiles) throw new Error(`the profile has more than ${maxFiles} files`);
  };
}

interface FoundFile {
  readonly path: string;
  /** The path within the profile. */
  readonly name: string;
  readonly depth: number;
  readonly owner: number;
  /** Called for each file that is packed. */
  readonly count: () => void;
}

/** What is packed of another's directory, or of none, would be saved as a profile that has nothing. */
async function packAll(tar: Pack, root: FoundFile): Promise<void> {
  const found = await lstat(root.path);
  if (!isTheirs(found, root.owner)) throw new Error("the profile is no directory of its browser's");
  await packDirectory(tar, root);
}

const isTheirs = (found: Stats, owner: number): boolean => found.isDirectory() && found.uid === owner;

async function packDirectory(tar: Pack, { path, name, depth, ...all }: FoundFile): Promise<void> {
  if (depth >= mostParts || !isTheirs(await lstat(path), all.owner)) return;
  const entries = await readdir(path, { withFileTypes: true });
  for (const entry of entries.filter((each) => isState(each.name))) {
    const inner = { path: join(path, entry.name), name: `${name}${entry.name}`, depth: depth + 1, ...all };
    if (entry.isDirectory()) await packDirectory(tar, { ...inner, name: `${inner.name}/` });
    if (entry.isFile()) await packFile(tar, inner);
  }
}

async function packFile(tar: Pack, { path, name, owner, count }: FoundFile): Promise<void> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const found = await file.stat();
    const isWhole = found.isFile() && found.uid === owner && found.nlink === 1;
    if (!isWhole || !isStateFile(basename(name), found.size)) return;
    count();
    await copyInto(tar, { file, name, size: found.size });
  } finally {
    await file.close();
  }
}

interface OpenFile {
  readonly file: FileHandle;
  readonly name: string;
  readonly size: number;
}

function copyInto(tar: Pack, { file, name, size }: OpenFile): Promise<void> {
  return new Promise((resolve, reject) => {
    const entry = tar.entry({ name, size, mode: 0o600, mtime: new Date(0) }, (error) =>
      error ? reject(error) : resolve(),
    );
    entry.on("error", reject);
    pump(file, size, entry).catch((error: unknown) => entry.destroy(asError(error)));
  });
}

type PackEntry = ReturnType<Pack["entry"]>;

async function pump(file: FileHandle, size: number, entry: PackEntry): Promise<void> {
  for (let at = 0; at < size;) {
    const { bytesRead, buffer } = await file.read(
      Buffer.allocUnsafe(Math.min(chunkBytes, size - at)),
      0,
      null,
      at,
    );
    if (bytesRead === 0) throw new Error("a file of the profile became shorter while it was read");
    at += bytesRead;
    if (!entry.write(buffer.subarray(0, bytesRead)))
      await new Promise<void>((resolve) => void entry.once("drain", resolve));
  }
  entry.end(undefined);
}
