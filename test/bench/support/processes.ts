import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import type { CpuGroup } from "./cpu.js";

const startLimitMs = 90_000;
const stopLimitMs = 60_000;

export interface Helper {
  readonly pid: number;
  /** The first line of its output that `find` took. */
  readonly said: string;
  stop(): Promise<void>;
}

interface Start {
  readonly file: string;
  /** Runs the program, in place of the Node.js that runs the bench. */
  readonly node?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Sees each line of its output; the first it gives a text for means that the process is ready. */
  readonly find: (line: string) => string | undefined;
  /** It runs in there. */
  readonly group?: CpuGroup;
  /** Instead of ours. */
  readonly uid?: number;
  /**
   * Puts it into the scheduler's idle class: it gets what nobody else wants, as if it had a machine of its
   * own.
   */
  readonly isIdle?: boolean;
  /** The process has to be ready within this time. */
  readonly limitMs?: number;
}

const running = new Set<ChildProcess>();

/** Whoever waits for one of them then fails, and clears up. */
export function endHelpers(): void {
  for (const child of running) child.kill("SIGTERM");
}

/**
 * Starts a program of this build in a process of its own, which ends with this one, and waits until it is
 * ready.
 */
export async function startHelper({
  file,
  node = process.execPath,
  environment = {},
  find,
  limitMs = startLimitMs,
  ...place
}: Start): Promise<Helper> {
  const child = spawnBound(placed([node, ...profiling(), file], place), environment);
  running.add(child);
  child.once("close", () => running.delete(child));
  const said = within(systemClock, { what: `starting ${file}`, limitMs }, readyLine(child, find));
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await within(systemClock, { what: `stopping ${file}`, limitMs: stopLimitMs }, ended).catch(() =>
      child.kill("SIGKILL"),
    );
  };
  try {
    return { pid: child.pid ?? 0, said: await said, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** `REMUDA_BENCH_PROFILE=<directory>` writes a CPU profile of every process. */
const profiling = (): string[] =>
  process.env["REMUDA_BENCH_PROFILE"]
    ? ["--cpu-prof", `--cpu-prof-dir=${process.env["REMUDA_BENCH_PROFILE"]}`]
    : [];

/**
 * Each becomes the next by exec. The kernel forgets the parent-death signal when the uid changes (prctl(2)),
 * so that one comes last.
 */
function placed(
  command: readonly string[],
  { group, uid, isIdle = false }: Pick<Start, "group" | "uid" | "isIdle">,
): readonly string[] {
  if (process.platform !== "linux") return command;
  const bound = [
    "setpriv",
    "--pdeathsig",
    "SIGTERM",
    "--",
    ...(isIdle ? ["chrt", "--idle", "0"] : []),
    ...command,
  ];
  const owned =
    uid === undefined
      ? bound
      : ["setpriv", "--reuid", `${uid}`, "--regid", `${uid}`, "--clear-groups", "--", ...bound];
  return group ? group.within(owned) : owned;
}

function spawnBound(
  [program = "", ...args]: readonly string[],
  environment: Readonly<Record<string, string>>,
): ChildProcess {
  return spawn(program, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env["PATH"] ?? "", ...environment },
  });
}

function readyLine(child: ChildProcess, find: Start["find"]): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`it ended with ${code} before it was ready`)));
    createInterface({ input: child.stdout as Readable }).on("line", (line) => {
      const found = find(line);
      if (found !== undefined) resolve(found);
    });
  });
}
