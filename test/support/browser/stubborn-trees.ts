import { execFileSync } from "node:child_process";

/** What makes trees that a program in a browser's place can make, and that Node.js's `rm` cannot remove. */
const stubbornTrees = {
  /** No path leads to the last of them. */
  "directories too deep for a path": `
    for (let depth = 0; depth < 30; depth += 1) {
      mkdirSync("d".repeat(200));
      process.chdir("d".repeat(200));
    }
    writeFileSync("file", "");`,
  /** Root may enter it all the same. */
  "a directory closed to its owner": `
    mkdirSync("d/e", { recursive: true });
    writeFileSync("d/e/file", "");
    chmodSync("d/e", 0);
    chmodSync("d", 0);`,
} as const;

/**
 * Runs a module in a process of its own, as another user if one is named, and gives what it has written. It
 * begins in `directory`.
 */
export function runModule(code: string, directory: string, uid?: number): string {
  const as = uid === undefined ? [] : ["--reuid", `${uid}`, "--regid", `${uid}`, "--clear-groups", "--"];
  const [program = "", ...args] = [...(as.length > 0 ? ["setpriv", ...as] : []), process.execPath];
  const whole = `import { chmodSync, mkdirSync, writeFileSync } from "node:fs"; ${code}`;
  return execFileSync(program, [...args, "--input-type=module", "-e", whole], {
    cwd: directory,
    encoding: "utf8",
  });
}

type StubbornTree = keyof typeof stubbornTrees;
export const stubbornTreeNames = Object.keys(stubbornTrees) as readonly StubbornTree[];

export const makeStubbornTree = (tree: StubbornTree, directory: string, uid?: number): void =>
  void runModule(stubbornTrees[tree], directory, uid);
