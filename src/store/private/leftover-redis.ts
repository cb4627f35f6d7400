import { readFile, readlink, realpath } from "node:fs/promises";
import { type Clock, type Millis, pause } from "../../base/clock.js";
import { inlineCommand } from "../redis/inline-command.js";
import type { PrivateRedisPaths } from "./paths.js";

const gone = "";
const readOr = (reading: Promise<string>): Promise<string> => reading.catch(() => gone);

/**
 * The process that a pid file names, if it still is the Redis of that directory: its working directory says
 * so. Its name says nothing, since `redis.executable` may be a Valkey or a script that starts one.
 */
async function findLeftover(place: PrivateRedisPaths): Promise<number | undefined> {
  const pid = Number.parseInt(await readOr(readFile(place.pidFile, "utf8")), 10);
  if (!(pid > 1)) return undefined;
  const [directory, own] = await Promise.all([
    readOr(readlink(`/proc/${pid}/cwd`)),
    readOr(realpath(place.directory)),
  ]);
  return directory !== gone && directory === own ? pid : undefined;
}

async function awaitGone(place: PrivateRedisPaths, clock: Clock, limitMs: Millis): Promise<boolean> {
  const deadline = clock.monotonic() + limitMs;
  while ((await findLeftover(place)) !== undefined) {
    if (clock.monotonic() > deadline) return false;
    await pause(clock, 10);
  }
  return true;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // With ESRCH it ended first.
  }
}

type Limit = { readonly clock: Clock; readonly limitMs: Millis };

async function endByPid(place: PrivateRedisPaths, { clock, limitMs }: Limit): Promise<void> {
  for (const name of ["SIGTERM", "SIGKILL"] as const) {
    const pid = await findLeftover(place);
    if (pid === undefined) return;
    signal(pid, name);
    if (await awaitGone(place, clock, limitMs)) return;
  }
  throw new Error(`the Redis of ${place.directory} cannot be ended`);
}

/**
 * Ends a Redis that is found by its socket. This is for systems without /proc, where a pid file alone proves
 * nothing.
 */
async function endBySocket(place: PrivateRedisPaths, { clock, limitMs }: Limit): Promise<void> {
  const deadline = clock.monotonic() + limitMs;
  while (
    (await inlineCommand(place.socket, "SHUTDOWN", clock)) !== undefined ||
    (await inlineCommand(place.socket, "PING", clock)) !== undefined
  ) {
    if (clock.monotonic() > deadline) throw new Error(`the Redis at ${place.socket} does not shut down`);
    await pause(clock, 50);
  }
}

/**
 * Ends a Redis that a killed daemon left, gently and then by force. It is not adopted, because its parent's
 * death may have told it to exit.
 */
export const endLeftover = (place: PrivateRedisPaths, limit: Limit): Promise<void> =>
  process.platform === "linux" ? endByPid(place, limit) : endBySocket(place, limit);
