import { type ChildProcess, execFile } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, readlink } from "node:fs/promises";
import { promisify } from "node:util";

export const isRoot = process.getuid?.() === 0;

/**
 * The uid of the ordinary user that root stands in for. Nobody has it, and no other run of this program,
 * whose processes would count with ours.
 */
const ordinaryUid = 61_000 + (process.pid % 1000);
/** Gives the user whose the daemon of a tier is. */
export const uidOf = (tier: string): number =>
  isRoot && tier !== "root" ? ordinaryUid : (process.getuid?.() ?? ordinaryUid);

/** What in front of a command makes it that user's; nothing where this process is. */
export const asUser = (uid: number): string[] =>
  uid === process.getuid?.()
    ? []
    : ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--inh-caps=-all", "--"];

export const hasProgram = (name: string): Promise<boolean> =>
  promisify(execFile)("sh", ["-c", 'command -v "$0"', name]).then(
    () => true,
    () => false,
  );

export const pidsNow = async (): Promise<number[]> =>
  (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);

/** Reads a file of /proc; empty where the process is gone or is none of ours. */
export const factOf = (pid: number, file: string): Promise<string> =>
  readFile(`/proc/${pid}/${file}`, "latin1").catch(() => "");

/** The last of its numbers, one for each process namespace that it is in. */
export const pidInside = async (pid: number): Promise<number> =>
  Number(/^NSpid:.*\s(\d+)$/m.exec(await factOf(pid, "status"))?.[1] ?? pid);

/** Every process of a browser that has this root: those of Chromium alone, or also the programs around it. */
export async function processesOf(root: string, which: "chromium" | "all" = "chromium"): Promise<number[]> {
  const found = await Promise.all(
    (await pidsNow()).map(async (pid) => {
      const isTheirs =
        (await factOf(pid, "cmdline")).includes(`${root}/`) ||
        (await factOf(pid, "environ")).includes(`HOME=${root}\0`);
      if (!isTheirs || pid === process.pid) return [];
      return which === "all" || /chrom|headless/.test(await executableOf(pid)) ? [pid] : [];
    }),
  );
  return found.flat();
}

const executableOf = (pid: number): Promise<string> => readlink(`/proc/${pid}/exe`).catch(() => "");

/** They and all below them: Chromium's sandboxed processes name no directory. */
export async function withDescendants(pids: readonly number[]): Promise<number[]> {
  const parents = new Map(
    await Promise.all(
      (await pidsNow()).map(
        async (pid) => [pid, Number(/^PPid:\s+(\d+)$/m.exec(await factOf(pid, "status"))?.[1])] as const,
      ),
    ),
  );
  const childrenOf = (pid: number): number[] =>
    [...parents.keys()].filter((each) => parents.get(each) === pid);
  const below = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(below)];
  return [...new Set(pids.flatMap(below))];
}

/** Chromium's own first process: all others are its children. */
export async function findMainProcess(root: string): Promise<number> {
  for (const pid of await processesOf(root)) {
    const command = await factOf(pid, "cmdline");
    if (command.includes(`--user-data-dir=${root}/profile`) && !/--type=/.test(command)) return pid;
  }
  throw new Error(`no browser process of ${root} was found`);
}

export async function endOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return child.exitCode;
}
