import type { ChildProcess } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Clock } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import { sharedSocket } from "./display-sockets.js";
import { putForeignFile } from "../foreign-file.js";
import { hasPrivateRoot } from "../isolation/rungs.js";
import { type StartedProcess, startWalled } from "../isolation/syscall-filter.js";
import type { WalledIn, Walls } from "../isolation/walls.js";
import { setScreenSize, type Size } from "./randr.js";
import { lastLinesOf } from "../tail.js";
import { endProcessTree } from "../resources/process-tree.js";
import { openXClient } from "./x-client.js";

interface DisplaySpec {
  readonly xvfb: string;
  readonly walls: Walls;
  readonly inside: WalledIn;
  /** The start of the command line, such as what enters the browser's cgroup. */
  readonly prefix: readonly string[];
  readonly size: Size;
}

/** One X display, for one browser. */
export interface Display {
  readonly pid: number;
  /** The variables by which its clients find it and are admitted. */
  readonly environment: { readonly DISPLAY: string; readonly XAUTHORITY: string };
  /** Gives its screen another size. Throws `DisplayTooSmall` beyond what it was started for. */
  resize(size: Size): Promise<void>;
  stop(): Promise<void>;
}

export class DisplayTooSmall extends Error {
  constructor(wanted: Size, largest: Size) {
    super(
      `a display of ${wanted.width} × ${wanted.height} is more than ` +
        `${largest.width} × ${largest.height}, which this one can become`,
    );
    this.name = "DisplayTooSmall";
  }
}

const resizeLimitMs = 2_000;

/**
 * Clients of X (libxcb 1.15) ask for an abstract socket of the display's number before they look into a
 * directory, and a browser that shares the machine's network sees those of other X servers: number 0 may be a
 * desktop's.
 */
const unlikelyNumbers = [10_000, 60_000] as const;

/**
 * The largest size that any display can be given. Xvfb takes the memory of its largest screen at once, 4
 * bytes a pixel and no more: 14 MiB here, 8 for a screen of 1920 × 1080 (Xvfb 21.1,
 * docs/chromium.md#windows-and-displays).
 */
const roomy: Size = { width: 2560, height: 1440 };
const largestOf = ({ width, height }: Size): Size => ({
  width: Math.max(width, roomy.width),
  height: Math.max(height, roomy.height),
});

/**
 * Starts an Xvfb that admits only clients with its cookie. In a private root its socket is in the browser's
 * own directory, and its number is one that hardly any other X server has; otherwise it chooses a free number
 * itself. Rejects where it ends instead.
 */
export async function startDisplay(spec: DisplaySpec, clock: Clock, halt: AbortSignal): Promise<Display> {
  const cookie = randomBytes(16);
  await writeAuthority(spec, cookie);
  const child = await spawnXvfb(spec);
  const lines = lastLinesOf(child.stderr as Readable);
  const ended = new Promise<void>(
    (resolve) => void child.once("exit", () => resolve()).once("error", () => resolve()),
  );
  let socket: string | undefined;
  const stop = (): Promise<void> => stopXvfb(child, { socket, clock, ended });
  try {
    const number = await numberFrom(child, ended, halt);
    const isPrivate = hasPrivateRoot(spec.walls.rung);
    const path = isPrivate ? join(spec.inside.directories.display, `X${number}`) : sharedSocket(number);
    socket = isPrivate ? undefined : path;
    const resize = makeResize(path, { cookie, clock, largest: largestOf(spec.size) });
    await resize(spec.size);
    return {
      pid: child.pid,
      environment: { DISPLAY: `:${number}`, XAUTHORITY: spec.inside.directories.authority },
      resize,
      stop,
    };
  } catch (error) {
    await stop();
    throw new Error(`Xvfb did not start: ${lines().join("; ")}`, { cause: error });
  }
}

function spawnXvfb({ xvfb, walls, inside, prefix, size }: DisplaySpec): Promise<StartedProcess> {
  const { width, height } = largestOf(size);
  const screen = ["-screen", "0", `${width}x${height}x24`];
  const { directories } = inside;
  const number = hasPrivateRoot(walls.rung) ? [`:${randomInt(...unlikelyNumbers)}`] : [];
  // -noreset: without it the server starts over whenever its last client leaves.
  const command = [
    xvfb,
    ...number,
    "-displayfd",
    "3",
    ...screen,
    "-auth",
    directories.authority,
    "-nolisten",
    "tcp",
    "-noreset",
  ];
  return startWalled(walls, [...prefix, ...walls.display(inside, command)], {
    stdio: ["ignore", "ignore", "pipe", "pipe"],
    detached: true,
    env: { PATH: "/usr/bin:/bin", HOME: directories.root, TMPDIR: "/tmp" },
  });
}

const makeResize =
  (socket: string, { cookie, clock, largest }: { cookie: Buffer; clock: Clock; largest: Size }) =>
  async (size: Size): Promise<void> => {
    if (size.width > largest.width || size.height > largest.height) throw new DisplayTooSmall(size, largest);
    const limit = { what: "resizing the display", limitMs: resizeLimitMs };
    const client = await within(clock, limit, openXClient(socket, cookie));
    try {
      await within(clock, limit, setScreenSize(client, size));
    } finally {
      client.close();
    }
  };

async function numberFrom(child: ChildProcess, ended: Promise<void>, halt: AbortSignal): Promise<number> {
  const output = child.stdio[3] as Readable;
  const firstOutput = once(output, "data", { signal: halt }).then(([data]) =>
    Number.parseInt(String(data), 10),
  );
  const number = await Promise.race([firstOutput, ended.then(() => Number.NaN)]);
  firstOutput.catch(() => {});
  if (Number.isNaN(number)) throw new Error("it ended first");
  return number;
}

/**
 * An Xauthority file for any display (family 0xffff, no address, no number), so that it can be written before
 * Xvfb has chosen its number. The format is five fields, each but the first with a length before it (libXau,
 * Xauth(7)).
 */
async function writeAuthority({ inside: { directories, uid } }: DisplaySpec, cookie: Buffer): Promise<void> {
  const fields = [Buffer.alloc(0), Buffer.alloc(0), Buffer.from("MIT-MAGIC-COOKIE-1"), cookie];
  const counted = fields.flatMap((field) => [Buffer.from([field.length >> 8, field.length & 0xff]), field]);
  await putForeignFile(directories.authority, Buffer.concat([Buffer.from([0xff, 0xff]), ...counted]), uid);
}

interface Stopping {
  /** A display without a private root leaves this socket file when it is killed. */
  readonly socket: string | undefined;
  readonly clock: Clock;
  readonly ended: Promise<void>;
}

async function stopXvfb(child: ChildProcess, { socket, clock, ended }: Stopping): Promise<void> {
  await endProcessTree({ pid: child.pid, exited: ended }, clock);
  if (socket !== undefined) await rm(socket, { force: true });
}
