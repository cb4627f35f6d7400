import { lstat, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { temporaryName } from "../../config/resolve.js";

/** The files of the private Redis in a data directory. */
export interface PrivateRedisPaths {
  readonly directory: string;
  readonly pidFile: string;
  /** `directory`, unless that is too long for a socket's address. */
  readonly socketDirectory: string;
  readonly socket: string;
}

// sun_path holds 108 bytes on Linux and 104 on macOS, the closing zero included (unix(7)).
const addressLimitBytes = 103;

const isAddress = (path: string): boolean => Buffer.byteLength(path) <= addressLimitBytes;

/** The temporary directory is everybody's: one that another user made there under our name is refused. */
async function makeOwn(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const found = await lstat(directory);
  const isOwn = found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0;
  if (!isOwn) throw new Error(`${directory} is not a directory that only this user may enter; remove it`);
}

/** Where the private Redis keeps its files. */
export const privateRedisDirectory = (dataDir: string): string => join(dataDir, "redis");

export async function privateRedisPathsOf(dataDir: string): Promise<PrivateRedisPaths> {
  const directory = privateRedisDirectory(dataDir);
  const isNear = isAddress(join(directory, "redis.sock"));
  const socketDirectory = isNear ? directory : temporaryName(dataDir, "redis");
  if (!isNear) await makeOwn(socketDirectory);
  return {
    directory,
    pidFile: join(directory, "redis.pid"),
    socketDirectory,
    socket: join(socketDirectory, "redis.sock"),
  };
}
