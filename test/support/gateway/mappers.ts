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

/** The mappers that a process has started, without the walls around them. */
export const mappersOf = (daemon: number): number[] => treeOf(daemon).filter(isMapper);
