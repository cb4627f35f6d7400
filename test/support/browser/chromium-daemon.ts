import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { bound } from "../bound.js";
import { compiled } from "../compiled.js";

/** A daemon cut down to its browsers, in a process of its own. */
export interface BrowserDaemon {
  readonly child: ChildProcess;
  /** What it has said so far, a line each. */
  readonly said: readonly string[];
}

/** A uid, or the command that the daemon is started behind. */
type As = number | readonly string[];

/** One of the scripts beside this file or of the egress, by its path from test/support. */
export interface DaemonScript {
  /**
   * Starts the daemon, as another user if one is named or behind a command, and resolves when it has said
   * `line`. Throws when it ends instead.
   */
  start(scratchDirectory: string, line: string, as?: As): Promise<BrowserDaemon>;
}

export const daemonScript = (
  script:
    | "browser/daemon-of-browsers.mjs"
    | "browser/keyring-daemon.mjs"
    | "browser/unprivileged-daemon.mjs"
    | "egress/daemon-of-namespaces.mjs",
): DaemonScript => ({
  start: (scratchDirectory, line, as) =>
    startDaemon(
      bound(process.execPath, join(compiled, "test/support", script), compiled, scratchDirectory),
      line,
      as,
    ),
});

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
