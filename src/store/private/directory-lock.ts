import { spawn } from "node:child_process";
import { once } from "node:events";
import { type FileHandle, open } from "node:fs/promises";
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

async function writePid(handle: FileHandle): Promise<void> {
  await handle.truncate(0);
  await handle.write(`${process.pid}\n`, 0);
}

async function take(
  clock: Clock,
  handle: FileHandle,
): Promise<{ readonly isOurs: boolean; readonly pid: number | null }> {
  const taken = await flock(clock, handle.fd);
  const pid = await readPid(handle);
  // macOS has no flock(1): there the process that wrote its id decides, and two starts in the same instant
  // both win.
  return { isOurs: taken === "taken" || (taken === "unknown" && !isAlive(pid)), pid };
}

/**
 * One daemon per data directory (docs/deployment.md#one-machine). The file stays when the lock goes: removing
 * it would race with the next start.
 */
export async function lockDirectory(dataDir: string, clock: Clock): Promise<DirectoryLock> {
  await makeDurableDirectory(dataDir);
  const handle = await open(join(dataDir, "lock"), "a+", 0o600);
  try {
    const { isOurs, pid } = await take(clock, handle);
    if (!isOurs) {
      await handle.close();
      return { kind: "held", pid };
    }
    await writePid(handle);
  } catch (error) {
    await handle.close();
    throw error;
  }
  return { kind: "locked", release: () => release(handle) };
}

async function release(handle: FileHandle): Promise<void> {
  await handle.truncate(0);
  await handle.close();
}
