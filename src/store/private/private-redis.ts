import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { type Clock, type Millis, pause } from "../../base/clock.js";
import { TimeLimitReached, within } from "../../base/deadline.js";
import { inlineCommand } from "../redis/inline-command.js";
import { endLeftover } from "./leftover-redis.js";
import { type PrivateRedisPaths, privateRedisPathsOf } from "./paths.js";

export interface PrivateRedisOptions {
  readonly dataDir: string;
  /** A path, or a name to be found on the path. */
  readonly executable: string;
  readonly startLimitMs: Millis;
  readonly stopLimitMs: Millis;
  readonly environment: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** Called once when it ends although nobody stopped it; `why` holds its last lines. */
  readonly onDeath: (why: string) => void;
}

/** A redis-server of this daemon's own, on a unix socket. */
export interface PrivateRedis {
  readonly socket: string;
  readonly pid: number;
  /**
   * Stops it with its file flushed; kills it at the limit, or at once when `hurry` is aborted. Resolves when
   * it has ended.
   */
  stop(hurry?: AbortSignal): Promise<void>;
}

// JSON's escapes of quotes and backslashes are those of redis.conf.
const quoted = (text: string): string => JSON.stringify(text);

const settingsOf = (place: PrivateRedisPaths): string =>
  [
    `dir ${quoted(place.directory)}`,
    `pidfile ${quoted(place.pidFile)}`,
    `unixsocket ${quoted(place.socket)}`,
    "unixsocketperm 700",
    "port 0",
    "daemonize no",
    "appendonly yes",
    'save ""',
    // Lost keys would be lost truth: a write is refused instead (docs/deployment.md#one-machine).
    "maxmemory-policy noeviction",
    "loglevel warning",
    "",
  ].join("\n");

/** Spawned so that it gets SIGTERM when this process dies, however it dies; Redis then flushes and exits. */
function spawnRedis(
  place: PrivateRedisPaths,
  { executable, environment }: PrivateRedisOptions,
): ChildProcess {
  const [program, args] =
    process.platform === "linux"
      ? (["setpriv", ["--pdeathsig", "SIGTERM", executable, "-"]] as const)
      : ([executable, ["-"]] as const);
  // Detached: a terminal's Ctrl-C must not end it before those who still write to it.
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], env: environment, detached: true });
  child.stdin.on("error", () => {});
  child.stdin.end(settingsOf(place));
  return child;
}

const keptLines = 12;

function lastLinesOf(child: ChildProcess): () => string {
  let lines: string[] = [];
  const keep = (text: string): void => {
    lines = [...lines, ...text.split("\n").filter((line) => line.trim() !== "")].slice(-keptLines);
  };
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding("utf8").on("data", keep);
  return () => lines.join("\n");
}

/** Settles with how it ended; also where it could not be started at all. */
const endOf = (child: ChildProcess): Promise<string> =>
  new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code, signal) =>
      resolve(signal === null ? `exit code ${code}` : `signal ${signal}`),
    );
  });

async function becomeReady(socket: string, clock: Clock, giveUp: AbortSignal): Promise<void> {
  while (!giveUp.aborted && !isReady(await inlineCommand(socket, "PING", clock)))
    await pause(clock, 5, giveUp);
}

/**
 * One that still reads its file answers with another error, -LOADING. One whose disk is full refuses PING as
 * it does what changes anything (Redis 7.0), and is there: it answers what is read, and takes changes once
 * there is room.
 */
const isReady = (answer: string | undefined): boolean =>
  answer === "+PONG" || answer?.startsWith("-MISCONF ") === true;

async function awaitReady(running: Running, { clock, startLimitMs }: PrivateRedisOptions): Promise<void> {
  const givingUp = new AbortController();
  const died = running.ended.then((how) => {
    throw new Error(`redis-server ended while starting (${how})\n${running.lastLines()}`);
  });
  try {
    const ready = becomeReady(running.place.socket, clock, givingUp.signal);
    await within(
      clock,
      { what: "starting redis-server", limitMs: startLimitMs },
      Promise.race([ready, died]),
    );
  } finally {
    givingUp.abort();
  }
}

interface Running {
  readonly child: ChildProcess;
  readonly place: PrivateRedisPaths;
  readonly ended: Promise<string>;
  readonly lastLines: () => string;
}

async function stopRunning(
  { child, ended, place }: Running,
  limit: { clock: Clock; limitMs: Millis; hurry?: AbortSignal },
): Promise<void> {
  const kill = (): void => void child.kill("SIGKILL");
  if (limit.hurry?.aborted) kill();
  limit.hurry?.addEventListener("abort", kill);
  child.kill("SIGTERM");
  try {
    await within(limit.clock, { what: "stopping redis-server", limitMs: limit.limitMs }, ended);
  } catch (error) {
    if (!(error instanceof TimeLimitReached)) throw error;
    kill();
    await within(limit.clock, { what: "killing redis-server", limitMs: limit.limitMs }, ended);
  } finally {
    limit.hurry?.removeEventListener("abort", kill);
  }
  await removeTraces(place);
}

async function removeTraces(place: PrivateRedisPaths): Promise<void> {
  await Promise.all([rm(place.socket, { force: true }), rm(place.pidFile, { force: true })]);
  if (place.socketDirectory !== place.directory)
    await rm(place.socketDirectory, { recursive: true, force: true });
}

/**
 * Starts the private Redis of a data directory and resolves when it answers. One that a killed daemon left is
 * ended first, its file flushed: so the caller has to hold the directory's lock.
 */
export async function startPrivateRedis(options: PrivateRedisOptions): Promise<PrivateRedis> {
  const { clock, stopLimitMs } = options;
  const place = await privateRedisPathsOf(options.dataDir);
  await mkdir(place.directory, { recursive: true, mode: 0o700 });
  await endLeftover(place, { clock, limitMs: stopLimitMs });
  const child = spawnRedis(place, options);
  const running: Running = { child, place, ended: endOf(child), lastLines: lastLinesOf(child) };
  let isWanted = true;
  const stop = (hurry?: AbortSignal): Promise<void> => {
    isWanted = false;
    return stopRunning(running, { clock, limitMs: stopLimitMs, ...(hurry && { hurry }) });
  };
  try {
    await awaitReady(running, options);
    // Nobody reads how long each kind of command took, and to note it for each costs some percent of all. No
    // line of the configuration: Redis before 7.0 does not know it, and would not start.
    await inlineCommand(place.socket, "CONFIG SET latency-tracking no", clock);
  } catch (error) {
    await stop();
    throw error;
  }
  void running.ended.then(
    (how) => isWanted && options.onDeath(`redis-server ended (${how})\n${running.lastLines()}`),
  );
  return { socket: place.socket, pid: child.pid ?? 0, stop };
}
