import { readdirSync, readFileSync } from "node:fs";

const read = (path: string): string => {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
};

/**
 * Renderers of browsers that this process has started, by their pids here: those Chromium knows are of its
 * own namespace.
 */
export function ownRenderers(): number[] {
  const pids = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  const parents = new Map(
    pids.map((pid) => [pid, Number(/^PPid:\s*(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0)]),
  );
  const isBelow = (pid: number): boolean => {
    for (let above = parents.get(pid) ?? 0; above > 0; above = parents.get(above) ?? 0)
      if (above === process.pid) return true;
    return false;
  };
  return pids.filter((pid) => isBelow(pid) && read(`/proc/${pid}/cmdline`).includes("--type=renderer"));
}
