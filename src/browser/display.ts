import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Clock } from "../base/clock.js";
import { within } from "../base/deadline.js";
import type { Directories } from "./chromium.js";
import { type Confinement, confined, type Tools } from "./confinement.js";
import { findSocket, removeTraces, socketOf, type Traces } from "./display-traces.js";
import { putForeignFile } from "./foreign-file.js";
import { setScreenSize, type Size } from "./randr.js";
import { tailOf } from "./tail.js";
import { openXClient } from "./x-client.js";

export interface DisplaySpec {
  readonly xvfb: string;
  readonly tools: Tools;
  readonly confinement: Confinement;
  readonly directories: Directories;
  readonly size: Size;
}

/** One X display, for one browser. */
export interface Display {
  readonly pid: number;
  /** What its clients need to find it and to be let in. */
  readonly environment: { readonly DISPLAY: string; readonly XAUTHORITY: string };
  /** Gives its screen another size. Throws `DisplayTooSmall` beyond what it was started for. */
  resize(size: Size): Promise<void>;
  stop(): Promise<void>;
}

export class DisplayTooSmall extends Error {
  constructor(wanted: Size, largest: Size) {
    super(`a display of ${wanted.width} × ${wanted.height} is more than ${largest.width} × ${largest.height}, which this one can become`);
    this.name = "DisplayTooSmall";
  }
}

const stopLimitMs = 1_000;
const resizeLimitMs = 2_000;

/**
 * What any display can become. Xvfb takes the memory of its largest screen at once, 4 bytes a pixel and no more: 14 MiB
 * here, 8 for a screen of 1920 × 1080 (measured, 21.1).
 */
const roomy: Size = { width: 2560, height: 1440 };
const largestOf = ({ width, height }: Size): Size => ({ width: Math.max(width, roomy.width), height: Math.max(height, roomy.height) });

/** Starts an Xvfb that chooses its number itself and admits only who has its cookie. Rejects when it ends instead. */
export async function startDisplay(spec: DisplaySpec, clock: Clock, halt: AbortSignal): Promise<Display> {
  const cookie = randomBytes(16);
  const authority = await writeAuthority(spec, cookie);
  const child = spawnXvfb(spec, authority);
  const lines = tailOf(child.stderr as Readable);
  const ended = new Promise<void>((resolve) => void child.once("exit", () => resolve()).once("error", () => resolve()));
  try {
    const number = await numberFrom(child, ended, halt);
    const traces = { pid: child.pid ?? 0, uid: spec.confinement.uid, number, socket: await findSocket(number) };
    const resize = makeResize(socketOf(number), { cookie, clock, largest: largestOf(spec.size) });
    await resize(spec.size);
    const stop = (): Promise<void> => stopXvfb(child, traces, { clock, ended });
    return { pid: child.pid ?? 0, environment: { DISPLAY: `:${number}`, XAUTHORITY: authority }, resize, stop };
  } catch (error) {
    child.kill("SIGKILL");
    await ended;
    await removeTraces({ pid: child.pid ?? 0, uid: spec.confinement.uid });
    throw new Error(`Xvfb did not start: ${lines().join("; ")}`, { cause: error });
  }
}

function spawnXvfb({ xvfb, tools, confinement, directories, size }: DisplaySpec, authority: string): ChildProcess {
  const { width, height } = largestOf(size);
  const screen = ["-screen", "0", `${width}x${height}x24`];
  // -noreset: without it the server starts over whenever its last client leaves.
  const command = [xvfb, "-displayfd", "3", ...screen, "-auth", authority, "-nolisten", "tcp", "-noreset"];
  const [program = xvfb, ...args] = confined(tools, confinement, command);
  return spawn(program, args, {
    stdio: ["ignore", "ignore", "pipe", "pipe"],
    detached: true,
    env: { PATH: "/usr/bin:/bin", HOME: directories.root, TMPDIR: directories.temporary },
  });
}

const makeResize = (socket: string, { cookie, clock, largest }: { cookie: Buffer; clock: Clock; largest: Size }) =>
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
  const said = once(output, "data", { signal: halt }).then(([data]) => Number.parseInt(String(data), 10));
  const number = await Promise.race([said, ended.then(() => Number.NaN)]);
  said.catch(() => {});
  if (Number.isNaN(number)) throw new Error("it ended first");
  return number;
}

/**
 * An Xauthority file for any display (family 0xffff, no address, no number), so that it can be written before Xvfb has
 * chosen its number. The format is five fields, each but the first with a length before it (libXau, Xauth(7)).
 */
async function writeAuthority({ directories, confinement }: DisplaySpec, cookie: Buffer): Promise<string> {
  const path = join(directories.root, "xauthority");
  const fields = [Buffer.alloc(0), Buffer.alloc(0), Buffer.from("MIT-MAGIC-COOKIE-1"), cookie];
  const counted = fields.flatMap((field) => [Buffer.from([field.length >> 8, field.length & 0xff]), field]);
  await putForeignFile(path, Buffer.concat([Buffer.from([0xff, 0xff]), ...counted]), confinement.uid);
  return path;
}

async function stopXvfb(child: ChildProcess, traces: Traces, { clock, ended }: { clock: Clock; ended: Promise<void> }): Promise<void> {
  // Asked by SIGTERM, it removes its own lock and socket.
  child.kill("SIGTERM");
  await within(clock, { what: "stopping Xvfb", limitMs: stopLimitMs }, ended).catch(() => child.kill("SIGKILL"));
  await ended;
  await removeTraces(traces);
}
