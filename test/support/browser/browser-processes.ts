import { readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { takeCensus } from "./chromium-census.js";

/** The processes of one browser that can be killed one by one. */
export interface BrowserProcesses {
  /** Chromium's main process. */
  readonly main?: number;
  readonly display?: number;
}

/** The directory of a session's browser; of one that has none, a path at which nothing is. */
export function workspaceOf(scratchDirectory: string, session: string): string {
  const paths = readdirSync(scratchDirectory).map((name) => join(scratchDirectory, name));
  return paths.find((path) => findSession(path) === session) ?? join(scratchDirectory, "none");
}

function findSession(workspace: string): string | undefined {
  try {
    return readFileSync(join(workspace, "session"), "utf8").trim();
  } catch {
    return undefined;
  }
}

/** Found by what they were started as. */
export async function processesOf(scratchDirectory: string, session: string): Promise<BrowserProcesses> {
  const workspace = basename(workspaceOf(scratchDirectory, session));
  const { processes } = await takeCensus(scratchDirectory, new Set());
  const pids = processes.map((line) => Number.parseInt(line, 10));
  const commands = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "")),
  );
  const find = (fits: (command: string) => boolean): number | undefined =>
    pids.find((_, at) => fits(commands[at] ?? ""));
  const isChromium = (command: string): boolean =>
    /^[^\0]*(?:chrom|node)[^\0]*\0/.test(command) && !command.includes("--type=");
  const main = find((command) => command.includes(`${workspace}/profile`) && isChromium(command));
  const display = find((command) => command.startsWith("/usr/bin/Xvfb") && command.includes(workspace));
  return { ...(main !== undefined && { main }), ...(display !== undefined && { display }) };
}

/** The processes that show the pages of the browser whose main process this is, where it has a cgroup. */
export function renderersBeside(main: number): readonly number[] {
  const cgroups = readProcess(main, "cgroup");
  const pids = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  return pids.filter(
    (pid) =>
      readProcess(pid, "cmdline").includes("--type=renderer") && readProcess(pid, "cgroup") === cgroups,
  );
}

/** Empty where the process has ended meanwhile. */
function readProcess(pid: number, file: "cgroup" | "cmdline"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return "";
  }
}
