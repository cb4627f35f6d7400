import { execFileSync, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  closeSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { workspaceOf } from "../browser/browser-processes.js";
import type { DaemonProcess } from "../daemon/daemon-process.js";
import { newDirectory } from "../killed-runs.js";

const mounting =
  'mkdir -p -m 700 "$1" && mount -t tmpfs -o size="$2m",mode=700 remuda "$1" && shift 2 && exec "$@"';

/** A command that becomes a daemon, with a directory on a disk of so many MiB that nobody else sees. */
export function onSmallDisk(directory: string, mebibytes: number): readonly string[] {
  const mount = ["unshare", "--mount", "sh", "-c", mounting];
  return [...mount, "sh", directory, String(mebibytes)];
}

const looping =
  'truncate -s "$3M" "$2" && mkfs.ext4 -q -m 0 "$2" && mount -o loop "$2" "$1" && shift 3 && exec "$@"';

/**
 * The same on ext4, as on a machine's disk: browsers are given no file systems in memory there. `image` is
 * where the disk's bytes lie.
 */
export function onLoopDisk(directory: string, image: string, mebibytes: number): readonly string[] {
  return ["unshare", "--mount", "sh", "-c", looping, "sh", directory, image, String(mebibytes)];
}

/** Whether disks of either kind can be mounted here. */
export function canMountDisks(): boolean {
  const places = newDirectory("disk-trial");
  const [directory, image] = [join(places, "disk"), join(places, "image")];
  mkdirSync(directory);
  const [program = "", ...words] = [...onLoopDisk(directory, image, 8), "true"];
  const { status } = spawnSync(program, words);
  rmSync(places, { recursive: true });
  return process.getuid?.() === 0 && status === 0;
}

/** A disk of so many MiB in a directory, which everybody sees, until the test is over at most. */
export function mountSmallDisk(directory: string, mebibytes: number): SmallDisk & { unmount(): void } {
  const options = `size=${mebibytes}m,mode=700`;
  execFileSync("mount", ["-t", "tmpfs", "-o", options, "remuda", directory]);
  let isMounted = true;
  // What is still open there keeps its files until it is closed.
  const unmount = (): void => {
    if (isMounted) execFileSync("umount", ["--lazy", directory]);
    isMounted = false;
  };
  onTestFinished(unmount);
  return Object.assign(new SmallDisk(directory), { unmount });
}

/** The disk that a directory of a running daemon is on, which was started so. */
export const diskOf = ({ pid }: DaemonProcess, directory: string): SmallDisk =>
  new SmallDisk(join(`/proc/${pid}/root`, directory));

const fillEveryMs = 5;
const page = Buffer.alloc(4096);

export class SmallDisk {
  #filling: { readonly file: number; readonly timer: NodeJS.Timeout } | undefined;

  constructor(private readonly root: string) {}

  get #filler(): string {
    return join(this.root, "filler");
  }

  /** No page is free any more, and one that becomes so is taken. */
  fill(): void {
    const file = openSync(this.#filler, "w");
    const fill = (): void => {
      try {
        for (;;) writeSync(file, page);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      }
    };
    fill();
    this.#filling = { file, timer: setInterval(fill, fillEveryMs) };
    onTestFinished(() => this.empty());
  }

  /** There is room again. Harmless where there was. */
  empty(): void {
    if (!this.#filling) return;
    clearInterval(this.#filling.timer);
    closeSync(this.#filling.file);
    this.#filling = undefined;
    rmSync(this.#filler, { force: true });
  }
}

/** Gives the profile of a daemon's browser so many bytes that no compression makes fewer. */
export function growProfile({ pid, place }: DaemonProcess, session: string, bytes: number): void {
  const workspace = workspaceOf(join(`/proc/${pid}/root`, place.scratchDirectory), session);
  const profile = join(workspace, "profile", "Default");
  const { uid, gid } = lstatSync(profile);
  const file = join(profile, "Bookmarks");
  writeFileSync(file, randomBytes(bytes));
  lchownSync(file, uid, gid);
}
