import { closeSync, lchownSync, lstatSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { workspaceOf } from "../../support/browser/browser-processes.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import type { DaemonPlace } from "../../support/daemon/daemon-settings.js";

const mounting =
  'mkdir -p -m 700 "$1" && mount -t tmpfs -o size="$2m",mode=700 remuda "$1" && shift 2 && exec "$@"';

/** A command that becomes a daemon, whose data are on a disk of so many MiB that nobody else sees. */
export function onSmallDisk({ dataDir }: DaemonPlace, mebibytes: number): readonly string[] {
  const mount = ["unshare", "--mount", "sh", "-c", mounting];
  return [...mount, "sh", dataDir, String(mebibytes)];
}

const fillEveryMs = 5;
const page = Buffer.alloc(4096);

/** The disk of a daemon that was started so. */
export class SmallDisk {
  readonly #root: string;
  #filling: { readonly file: number; readonly timer: NodeJS.Timeout } | undefined;

  constructor(private readonly daemon: DaemonProcess) {
    this.#root = `/proc/${daemon.pid}/root`;
  }

  get #filler(): string {
    return join(this.#root, this.daemon.place.dataDir, "filler");
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
  }

  /** There is room again. Harmless where there was. */
  empty(): void {
    if (!this.#filling) return;
    clearInterval(this.#filling.timer);
    closeSync(this.#filling.file);
    this.#filling = undefined;
    rmSync(this.#filler, { force: true });
  }

  /** Gives the profile of a browser so many bytes that no compression makes fewer. */
  growProfile(session: string, bytes: number): void {
    const workspace = workspaceOf(join(this.#root, this.daemon.place.scratchDirectory), session);
    const profile = join(workspace, "profile", "Default");
    const { uid, gid } = lstatSync(profile);
    const file = join(profile, "Bookmarks");
    writeFileSync(file, randomBytes(bytes));
    lchownSync(file, uid, gid);
  }
}
