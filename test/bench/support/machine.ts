import { execFile } from "node:child_process";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { promisify } from "node:util";
import { findExecutable } from "../../../src/browser/executable.js";

const versionOf = async (program: string | undefined): Promise<string> =>
  program === undefined ? "none" : (await promisify(execFile)(program, ["--version"])).stdout.trim();

/** What the figures were found on. */
export async function describeMachine(): Promise<string> {
  const [chromium, redis] = await Promise.all([
    findExecutable("chromium").then(versionOf),
    versionOf("redis-server"),
  ]);
  const memory = `${(totalmem() / 2 ** 30).toFixed(0)} GiB`;
  return [
    `${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${memory}, ${type()} ${release()}, load ${loadavg()
      .map((load) => load.toFixed(1))
      .join(" ")}`,
    `Node.js ${process.version}, ${chromium}, ${redis.split(" ").slice(0, 3).join(" ")}`,
  ].join("\n");
}
