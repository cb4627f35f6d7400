import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const root = join(import.meta.dirname, "../../..");
let built: Promise<URL> | undefined;

/** judge-worker.js: threads of Node.js 20 run no TypeScript. Once for each process, and gone with it. */
export const builtJudge = (): Promise<URL> => (built ??= build());

async function build(): Promise<URL> {
  const directory = mkdtempSync(join(tmpdir(), "remuda-test-judge-"));
  process.once("exit", () => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, "package.json"), '{"type":"module"}');
  const options = [
    "--ignoreConfig",
    "--noCheck",
    "--module",
    "nodenext",
    "--target",
    "es2023",
    "--types",
    "node",
    "--rootDir",
    root,
    "--outDir",
    directory,
  ];
  await promisify(execFile)(process.execPath, [
    join(root, "node_modules/typescript/bin/tsc"),
    ...options,
    join(root, "src/gateway/gates/judge-worker.ts"),
  ]);
  return pathToFileURL(join(directory, "src/gateway/gates/judge-worker.js"));
}
