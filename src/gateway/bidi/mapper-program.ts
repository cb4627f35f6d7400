import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Sidecar } from "../../browser/chromium.js";

/** Node.js itself, its code, and what waits to be sent by each of its two sockets (mapper-process.ts). */
const besidesHeapBytes = 640 * 2 ** 20;

const flags = ["--no-addons", "--disallow-code-generation-from-strings"];

/**
 * The command line of a mapper, and the files that it is made of. `script` is the compiled mapper-process.js.
 */
export function mapperProgram(script: URL, heapBytes: number): Sidecar {
  const path = fileURLToPath(script);
  const heap = `--max-old-space-size=${Math.ceil(heapBytes / 2 ** 20)}`;
  return {
    command: [process.execPath, heap, ...flags, path],
    files: filesOf(path),
    memoryBytes: heapBytes + besidesHeapBytes,
  };
}

/** Node.js, our own compiled code, the package.json that says how to read it, and the packages. */
function filesOf(script: string): readonly string[] {
  const sources = dirname(dirname(dirname(script)));
  const manifest = findAbove(sources, "package.json").slice(0, 1);
  return [process.execPath, sources, ...manifest, ...findAbove(sources, "node_modules")];
}

/** What is called so in the directories above, the nearest first. */
function findAbove(directory: string, name: string): readonly string[] {
  const parent = dirname(directory);
  if (parent === directory) return [];
  const path = join(parent, name);
  return [...(existsSync(path) ? [path] : []), ...findAbove(parent, name)];
}
