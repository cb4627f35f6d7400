import { execFile } from "node:child_process";
import type { Millis } from "../base/clock.js";

/** How a short-lived program ended, and what it wrote to its standard output and to its standard error. */
interface ProgramResult {
  readonly succeeded: boolean;
  readonly output: string;
  readonly complaint: string;
}

/** Runs a short-lived program to its end, or kills it at the limit. Never throws. */
export const runProgram = (
  program: string,
  args: readonly string[],
  limitMs: Millis,
): Promise<ProgramResult> =>
  new Promise((resolve) => {
    const options = {
      timeout: limitMs,
      killSignal: "SIGKILL",
      env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin" },
    } as const;
    execFile(program, [...args], options, (error, output, complaint) => {
      resolve({ succeeded: error === null, output, complaint });
    });
  });
