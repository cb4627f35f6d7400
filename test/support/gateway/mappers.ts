import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Empty where the process has ended meanwhile. */
function read<Found>(look: () => readonly Found[]): readonly Found[] {
  try {
    return look();
  } catch {
    return [];
  }
}

const childrenOf = (pid: number): readonly number[] =>
  read(() =>
    readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
    ),
  );

const treeOf = (pid: number): readonly number[] => [pid, ...childrenOf(pid).flatMap(treeOf)];

const isMapper = (pid: number): boolean =>
  read(() => [readlinkSync(`/proc/${pid}/exe`)]).includes(process.execPath) &&
  read(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")).some((word) =>
    word.endsWith("/mapper-process.js"),
  );

/** What the programs are called that a process has started, and those that these have. */
export const programsUnder = (pid: number): readonly string[] =>
  treeOf(pid).flatMap((each) => read(() => [readFileSync(`/proc/${each}/comm`, "utf8").trim()]));

/** The mappers that a process has started, without the walls around them. */
export const mappersOf = (daemon: number): number[] => treeOf(daemon).filter(isMapper);
