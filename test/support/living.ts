import { readFileSync } from "node:fs";

/** Whether a process runs; one that has ended and was not yet reaped by its parent does not. */
export function isLiving(pid: number): boolean {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    return !["Z", "X"].includes(text.slice(text.lastIndexOf(")") + 2, text.lastIndexOf(")") + 3));
  } catch {
    return false;
  }
}
