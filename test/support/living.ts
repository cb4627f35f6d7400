import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";

/** Signals one process. Where there is none nobody is: -1 would be everybody, and 0 the group of this one. */
export function signal(pid: number | undefined, name: NodeJS.Signals): asserts pid is number {
  if (pid === undefined || pid < 2) throw new Error(`there is no process to be sent ${name}`);
  process.kill(pid, name);
}

/** The same for one of several, which may have ended since they were looked for. */
export function signalLiving(pid: number, name: NodeJS.Signals): void {
  try {
    signal(pid, name);
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

const isGone = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ESRCH";

/** Ends a process that was started `detached`, and its group: a browser that crashes leaves some of it. */
export async function endGroup(child: ChildProcess): Promise<void> {
  const { pid, exitCode, signalCode } = child;
  if (pid === undefined) return;
  const ended = exitCode === null && signalCode === null ? once(child, "exit") : undefined;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    if (!isGone(error)) throw error;
  }
  await ended;
}

/** Whether a process runs; one that has ended and was not yet reaped by its parent does not. */
export function isLiving(pid: number): boolean {
  try {
    return !["Z", "X"].includes(stateOf(pid));
  } catch {
    return false;
  }
}

/** The kernel's letter for what a process does now (proc_pid_stat(5)): T is one that was stopped. */
export function stateOf(pid: number): string {
  const text = readFileSync(`/proc/${pid}/stat`, "latin1");
  return text.slice(text.lastIndexOf(")") + 2, text.lastIndexOf(")") + 3);
}
