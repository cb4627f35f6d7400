import { readFile } from "node:fs/promises";
import { takeCensus } from "./chromium-census.js";

/** The processes of one browser that can be killed one by one. */
export interface BrowserProcesses {
  /** Chromium's main process; -1 while there is none. */
  readonly main: number;
  readonly display?: number;
}

/** Found by what they were started as. */
export async function processesOf(scratchDirectory: string, session: string): Promise<BrowserProcesses> {
  const { processes } = await takeCensus(scratchDirectory, new Set());
  const pids = processes.map((line) => Number.parseInt(line, 10));
  const commands = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "")));
  const find = (fits: (command: string) => boolean): number | undefined => pids.find((_, at) => fits(commands[at] ?? ""));
  const main = find((command) => command.includes(`${session}/profile`) && !command.includes("--type=") && !command.startsWith("setpriv"));
  const display = find((command) => command.includes("Xvfb") && command.includes(session));
  return { main: main ?? -1, ...(display !== undefined && { display }) };
}
