import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { processesOf } from "../browser/browser-processes.js";

/** A browser in the proxy tier. */
export interface Proxied {
  readonly scratchDirectory: string;
  readonly session: string;
}

interface Asked {
  readonly path: string;
  /** Each is asked by a client of its own. */
  readonly hosts: readonly string[];
}

/**
 * Asks through a browser's proxy, as its browser does: the proxy serves that uid alone. Gives what stops it,
 * which fails where it had ended before.
 */
export async function askThroughProxy(
  { scratchDirectory, session }: Proxied,
  { path, hosts }: Asked,
): Promise<() => Promise<void>> {
  const { main } = await processesOf(scratchDirectory, session);
  if (main === undefined) throw new Error(`${session} has no browser`);
  const command = await readFile(`/proc/${main}/cmdline`, "latin1");
  const [, address, port] = /--proxy-server=http:\/\/([\d.]+):(\d+)/.exec(command) ?? [];
  if (address === undefined || port === undefined)
    throw new Error(`${session} has no proxy of the proxy tier`);
  const { uid, gid } = await stat(`/proc/${main}`);
  const code = await readFile(join(import.meta.dirname, "proxy-client.mjs"), "utf8");
  const child = spawn(process.execPath, ["--input-type=module", "-e", code, address, port, path, ...hosts], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    cwd: "/",
    ...(process.getuid?.() === 0 && { uid, gid }),
  });
  const exited = once(child, "exit");
  return async () => {
    const { exitCode } = child;
    child.kill("SIGKILL");
    await exited;
    if (exitCode !== null)
      throw new Error(`what asked through the proxy of ${session} ended with ${exitCode}`);
  };
}
