import { execFile } from "node:child_process";
import type { Millis } from "../base/clock.js";

/** How a program ended, and what it wrote to its standard output and to its standard error. */
interface ProgramResult {
  readonly succeeded: boolean;
  readonly output: string;
  readonly complaint: string;
}

interface ProgramOptions {
  readonly limitMs: Millis;
  /** Kills the program earlier. */
  readonly signal?: AbortSignal;
}

/** Runs a program to its end, or kills it at the limit. Never throws. */
export const runProgram = (
  program: string,
  args: readonly string[],
  { limitMs, signal }: ProgramOptions,
): Promise<ProgramResult> =>
  new Promise((resolve) => {
    const options = {
      timeout: limitMs,
      killSignal: "SIGKILL",
      env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin" },
    } as const;
    const child = execFile(program, [...args], options, (error, output, complaint) => {
      signal?.removeEventListener("abort", kill);
      resolve({ succeeded: error === null, output, complaint });
    });
    // execFile's own `signal` calls back before the program has ended (Node.js 20.20).
    const kill = (): void => void child.kill("SIGKILL");
    signal?.addEventListener("abort", kill);
    if (signal?.aborted) kill();
  });
