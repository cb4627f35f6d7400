import { type ChildProcess, spawn } from "node:child_process";
import { chmod, copyFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { compileSources } from "../compiled.js";

/** A daemon cut down to its browsers, in a process of its own. */
export interface BrowserDaemon {
  readonly child: ChildProcess;
  /** What it has said so far, a line each. */
  readonly said: readonly string[];
}

/** A uid, or the command that the daemon is started behind. */
type As = number | readonly string[];

export interface DaemonScript {
  /**
   * Starts the daemon, as another user if one is named or behind a command, and resolves when it has said
   * `line`. Throws when it ends instead.
   */
  start(scratchDirectory: string, line: string, as?: As): Promise<BrowserDaemon>;
  remove(): Promise<void>;
}

/** Compiles the sources and puts a script beside them, where any user can read both. */
export async function prepareDaemon(
  script:
    | "daemon-of-browsers.mjs"
    | "../egress/daemon-of-namespaces.mjs"
    | "keyring-daemon.mjs"
    | "unprivileged-daemon.mjs",
): Promise<DaemonScript> {
  const { directory, remove } = await compileSources();
  const path = join(directory, basename(script));
  await copyFile(fileURLToPath(new URL(script, import.meta.url)), path);
  await chmod(directory, 0o755);
  return {
    remove,
    start: (scratchDirectory, line, as) =>
      startDaemon([process.execPath, path, directory, scratchDirectory], line, as),
  };
}

async function startDaemon(command: readonly string[], line: string, as: As = []): Promise<BrowserDaemon> {
  const identity =
    typeof as === "number" ? ["setpriv", "--reuid", `${as}`, "--regid", `${as}`, "--clear-groups", "--"] : as;
  const [program = "", ...args] = [...identity, ...command];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"], cwd: "/" });
  const said: string[] = [];
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (each) => {
      said.push(each);
      if (each === line) resolve();
    });
    child.once("exit", (code, signal) =>
      reject(new Error(`the daemon ended (${code ?? signal}) after: ${said.join(", ")}`)),
    );
  });
  return { child, said };
}
