import { stat } from "node:fs/promises";
import { runProgram } from "./run-program.js";

const limitMs = 10_000;

/** Tells the major version an executable says it is, such as "156"; undefined when it does not say. */
export type FindMajorVersion = (executable: string) => Promise<string | undefined>;

/** Asks each executable once, and again when its file has changed: asking starts the executable. */
export function makeFindMajorVersion(): FindMajorVersion {
  const known = new Map<string, Promise<string | undefined>>();
  return async (executable) => {
    const { mtimeMs } = await stat(executable);
    const key = `${executable} ${mtimeMs}`;
    const found = known.get(key) ?? askMajorVersion(executable);
    known.set(key, found);
    return await found;
  };
}

async function askMajorVersion(executable: string): Promise<string | undefined> {
  const { output } = await runProgram(executable, ["--version"], limitMs);
  return / (\d+)\.\d/.exec(output)?.[1];
}
