import { execFile } from "node:child_process";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { promisify } from "node:util";
import { type Millis, pause, systemClock } from "../../../src/base/clock.js";
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

const lookMs: Millis = 200;
const restLimitMs: Millis = 10_000;
/** Part of the processors' time that a machine at rest uses at most. */
const atRest = 0.1;

/**
 * Resolves once what was ended has gone and costs nothing more, or after a limit where others are at work.
 */
export async function processorsAtRest(): Promise<void> {
  const until = systemClock.monotonic() + restLimitMs;
  while (systemClock.monotonic() < until) {
    const before = busyMs();
    await pause(systemClock, lookMs);
    if (busyMs() - before < atRest * lookMs * cpus().length) return;
  }
}

const busyMs = (): Millis =>
  cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0);
