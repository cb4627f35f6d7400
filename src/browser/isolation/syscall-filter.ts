import { type ChildProcess, spawn, type SpawnOptions, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type StartedBrowser, startProcess } from "../resources/start-process.js";

/** The values of linux/audit.h, linux/seccomp.h and linux/filter.h. */
const archOf = { x64: 0xc000003e, ia32: 0x40000003, arm64: 0xc00000b7, arm: 0x40000028 } as const;
type Arch = keyof typeof archOf;
const [load, isEqual, hasBit, give] = [0x20, 0x15, 0x45, 0x06];
const [atNumber, atArch] = [0, 4];
const allowed = 0x7fff0000;
/** The call fails with ENOSYS, as on a kernel without keys, which programs expect. */
const denied = 0x00050000 | 38;
/** Marks the x32 calls of x86-64: the same calls under other numbers. */
const x32Bit = 0x40000000;

/**
 * add_key(2), request_key(2) and keyctl(2). Kernel keys are of no namespace: a browser would read those of
 * the session that the daemon was started in, and leave its own for the next of its uid.
 */
const closedCalls: Readonly<Record<Arch, readonly number[]>> = {
  x64: [248, 249, 250],
  ia32: [286, 287, 288],
  arm64: [217, 218, 219],
  arm: [309, 310, 311],
};

const instruction = (
  code: number,
  value: number,
  [then, otherwise]: readonly [number, number] = [0, 0],
): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(then, 2);
  bytes.writeUInt8(otherwise, 3);
  bytes.writeUInt32LE(value, 4);
  return bytes;
};

/** The part of the filter for processes of one architecture; all others skip it. */
function partFor(arch: Arch): Buffer {
  const tests = [
    ...(arch === "x64" ? [[hasBit, x32Bit] as const] : []),
    ...closedCalls[arch].map((call) => [isEqual, call] as const),
  ];
  const body = [
    instruction(load, atNumber),
    // Each test jumps to the last instruction.
    ...tests.map(([code, value], at) => instruction(code, value, [tests.length - at, 0])),
    instruction(give, allowed),
    instruction(give, denied),
  ];
  return Buffer.concat([instruction(isEqual, archOf[arch], [0, body.length]), ...body]);
}

/**
 * A program of the kernel's packet filter, as `--seccomp` of bwrap(1) reads it. It needs a little-endian
 * machine, as Chromium does.
 */
const filter = (): Buffer =>
  Buffer.concat([
    instruction(load, atArch),
    ...(["x64", "ia32", "arm64", "arm"] as const).map(partFor),
    instruction(give, allowed),
  ]);

/** Where all walls of a daemon find the filter. */
export const filterPath = (scratch: string): string => join(scratch, "etc", "calls.bpf");

/** Writes the filter, whole or not at all; gives its path. */
export async function makeFilter(scratch: string): Promise<string> {
  const path = filterPath(scratch);
  await mkdir(dirname(path), { recursive: true });
  const draft = `${path}.new`;
  await writeFile(draft, filter());
  await rename(draft, path);
  return path;
}

/** The descriptor that bwrap reads the filter from, and then closes. */
const descriptor = 5;
export const filterOptions = (path: string | undefined): string[] =>
  path === undefined ? [] : ["--seccomp", `${descriptor}`];

interface Starting extends SpawnOptions {
  readonly stdio: Extract<StdioOptions, readonly unknown[]>;
}

/** A process that there is: one that could not be started has no number. */
export type StartedProcess = ChildProcess & { readonly pid: number };

/**
 * Starts a command line of walls that have a filter, or none. Throws, with a text for people, where it
 * cannot.
 */
export async function startWalled(
  { filter: path }: { readonly filter?: string },
  [program = "", ...args]: readonly string[],
  options: Starting,
): Promise<StartedProcess> {
  if (path === undefined) return await started(spawn(program, args, options));
  const opened = openSync(path, "r");
  try {
    const stdio = Array.from({ length: descriptor }, (_, at) => options.stdio[at] ?? ("ignore" as const));
    return await started(spawn(program, args, { ...options, stdio: [...stdio, opened] }));
  } finally {
    closeSync(opened);
  }
}

/** Starts the command line of a browser, with its pipes; all else as `startWalled`. */
export async function startBrowser(
  walls: { readonly filter?: string },
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<StartedBrowser> {
  const stdio = ["ignore", "ignore", "pipe", "pipe", "pipe"] as const;
  const opened = walls.filter === undefined ? [] : [openSync(walls.filter, "r")];
  try {
    const child = startProcess(command, { descriptors: [...stdio, ...opened], env });
    if (child) return child;
  } catch (error) {
    throw asTold(error as NodeJS.ErrnoException);
  } finally {
    for (const each of opened) closeSync(each);
  }
  // It gets a process group of its own, so that a signal to the daemon's group does not reach it.
  return await startWalled(walls, command, { stdio: [...stdio], detached: true, cwd: "/", env });
}

/**
 * Node.js returns a process that could not be started too, and reports why on the next tick: if nobody
 * listened, that would end the daemon. Where no descriptor is left such a process has no streams either,
 * although its type says so.
 */
async function started(child: ChildProcess): Promise<StartedProcess> {
  const hasStreams = "stdio" in child && Array.isArray(child.stdio);
  if (hasStreams && isStarted(child)) return child;
  const [error] = (await once(child, "error")) as [NodeJS.ErrnoException];
  throw asTold(error);
}

const asTold = (error: NodeJS.ErrnoException): Error =>
  new Error(lacks[error.code ?? ""] ?? `it could not be started: ${error.message}`, { cause: error });

const isStarted = (child: ChildProcess): child is StartedProcess => child.pid !== undefined;

/** Causes for which fork(2) and pipe(2) fail and which no request is to blame for. */
const lacks: Readonly<Record<string, string>> = {
  EAGAIN: "the daemon may have no further process (EAGAIN: pids.max of its cgroup, or its RLIMIT_NPROC)",
  EMFILE: "no descriptor is left to start a process with (EMFILE)",
  ENFILE: "no descriptor is left to start a process with (ENFILE)",
  ENOMEM: "no memory is left to start a process with (ENOMEM)",
};
