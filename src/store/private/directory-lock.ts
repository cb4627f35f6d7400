import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../../base/errno.js";
import { makeDurableDirectory } from "../../base/files/durable.js";
import type { Clock } from "../../base/clock.js";
import { within } from "../../base/deadline.js";

type DirectoryLock =
  | { readonly kind: "locked"; readonly release: () => Promise<void> }
  /** `pid` is the holder's, or null where it has not been written yet. */
  | { readonly kind: "held"; readonly pid: number | null };

type Taken = "taken" | "held" | "unknown";
const flockLimitMs = 5000;

/**
 * Takes the kernel's lock on an open file through flock(1). It belongs to the open file, which that child
 * shares with us: so it stays ours after the child's end and goes with our process, however that ends
 * (flock(2)).
 */
async function flock(clock: Clock, fd: number): Promise<Taken> {
  const child = spawn("flock", ["-n", "3"], { stdio: ["ignore", "ignore", "ignore", fd] });
  try {
    const [code] = await within(clock, { what: "flock", limitMs: flockLimitMs }, once(child, "exit"));
    return code === 0 ? "taken" : "held";
  } catch (error) {
    child.kill("SIGKILL");
    if (errnoOf(error) === "ENOENT") return "unknown";
    throw error;
  }
}

async function readPid(handle: FileHandle): Promise<number | null> {
  const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(32), position: 0 });
  const pid = Number.parseInt(buffer.toString("utf8", 0, bytesRead), 10);
  return pid > 0 ? pid : null;
}

const isAlive = (pid: number | null): boolean => {
  try {
    return pid !== null && pid !== process.pid && process.kill(pid, 0);
  } catch {
    return false;
  }
};

const full: ReadonlySet<string | undefined> = new Set(["ENOSPC", "EDQUOT"]);

/** Where the kernel's lock decides, the id is only for messages: a disk that is full goes without. */
async function writePid(handle: FileHandle, taken: Taken): Promise<void> {
  await handle.truncate(0);
  try {
    await handle.write(`${process.pid}\n`, 0);
  } catch (error) {
    if (taken !== "taken" || !full.has(errnoOf(error))) throw error;
  }
}

interface LockAttempt {
  readonly taken: Taken;
  readonly isOurs: boolean;
  readonly pid: number | null;
}

async function take(clock: Clock, handle: FileHandle): Promise<LockAttempt> {
  const taken = await flock(clock, handle.fd);
  const pid = await readPid(handle);
  // macOS has no flock(1): there the process that wrote its id decides, and two starts in the same instant
  // both win.
  return { taken, isOurs: taken === "taken" || (taken === "unknown" && !isAlive(pid)), pid };
}

/** Who has a directory, to be read after "in use by". */
export const holderOf = (pid: number | null): string => (pid === null ? "another process" : `process ${pid}`);

/** A directory may be removed, and made anew, so often while it is locked. */
const mostTries = 10;

/**
 * One daemon per data directory (docs/deployment.md#one-machine), and per directory of browsers. The file
 * stays when the lock goes. Only who has the lock may remove it.
 */
export async function lockDirectory(directory: string, clock: Clock, name = "lock"): Promise<DirectoryLock> {
  for (let tries = 0; tries < mostTries; tries += 1) {
    const lock = await tryLock(directory, clock, name);
    if (lock !== undefined) return lock;
  }
  throw new Error(`${directory} is removed again and again`);
}

const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;

/** Undefined where the file that was locked is no longer there: its holder has removed it. */
async function tryLock(directory: string, clock: Clock, name: string): Promise<DirectoryLock | undefined> {
  await makeDurableDirectory(directory);
  const path = join(directory, name);
  const handle = await open(path, flags, 0o600).catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  });
  if (handle === undefined) return undefined;
  try {
    const { taken, isOurs, pid } = await take(clock, handle);
    if (isOurs && (await isAt(path, handle))) {
      await writePid(handle, taken);
      return { kind: "locked", release: () => release(handle) };
    }
    await handle.close();
    return isOurs ? undefined : { kind: "held", pid };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function isAt(path: string, handle: FileHandle): Promise<boolean> {
  const [held, there] = await Promise.all([handle.stat(), stat(path).catch(() => undefined)]);
  return there?.dev === held.dev && there.ino === held.ino;
}

async function release(handle: FileHandle): Promise<void> {
  await handle.truncate(0);
  await handle.close();
}
