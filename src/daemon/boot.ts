import { errnoOf } from "../base/errno.js";
import { CannotStart } from "../base/cannot-start.js";
import { textOf } from "../base/log.js";
import { Secret } from "../base/crypto/secret.js";
import { Stops } from "../base/stops.js";
import type { Config } from "../config/config.js";
import { closeToOthers } from "../config/private-files.js";
import type { ProcessContext } from "./shutdown.js";
import { holderOf, lockDirectory } from "../store/private/directory-lock.js";
import { startPrivateRedis } from "../store/private/private-redis.js";

/** What every role is given beside its configuration. */
export interface DaemonContext extends ProcessContext {
  /** The configured Redis, or the socket of the private one: a URL or an absolute path. */
  readonly redisUrl: Secret;
}

/** What a role's module exports. One that throws has stopped what it had started. */
export type Role = (config: Config, context: DaemonContext) => Promise<Stops>;

/** Someone else holds the data directory. */
class DirectoryHeld extends CannotStart {
  constructor(directory: string, pid: number | null) {
    super(
      `${directory} is in use by ${holderOf(pid)}: stop that daemon, or set REMUDA_DATA_DIR to another directory`,
    );
  }
}

/** These codes come where an earlier start was another user's. */
const notOurs = new Set(["EACCES", "EPERM", "EROFS", "ENOTDIR", "EEXIST"]);

function unusable(directory: string, error: unknown): unknown {
  if (!(error instanceof Error && notOurs.has(errnoOf(error) ?? ""))) return error;
  return new CannotStart(
    `${directory} cannot be the data directory (${error.message}): name another one in REMUDA_DATA_DIR (data_dir)`,
  );
}

async function holdDirectory({ dataDir }: Config, { clock }: ProcessContext): Promise<() => Promise<void>> {
  const lock = await lockDirectory(dataDir, clock).catch((error: unknown) => {
    throw unusable(dataDir, error);
  });
  if (lock.kind === "held") throw new DirectoryHeld(dataDir, lock.pid);
  return lock.release;
}

async function openRedis(config: Config, lifetime: ProcessContext, stops: Stops): Promise<Secret> {
  if (config.redis.url) return config.redis.url;
  const { executable, startLimitMs, stopLimitMs } = config.redis;
  const redis = await startPrivateRedis({
    dataDir: config.dataDir,
    executable,
    startLimitMs,
    stopLimitMs,
    environment: config.childEnvironment,
    clock: lifetime.clock,
    onDeath: (why) => lifetime.fail(new Error(why)),
  });
  stops.add("private redis", () => redis.stop(lifetime.hurry));
  lifetime.log.info({ socket: redis.socket, redisPid: redis.pid }, "private redis started");
  return new Secret(redis.socket);
}

/**
 * Starts a role once this process holds the data directory and its Redis answers; both are given up after the
 * role has stopped.
 */
export async function boot(role: Role, config: Config, lifetime: ProcessContext): Promise<Stops> {
  // The role bounds its own stop, drain included; this only keeps one that hangs from holding up the rest.
  const stops = new Stops(lifetime.clock, config.drain.limitMs + config.stop.limitMs);
  try {
    stops.add("data directory", await holdDirectory(config, lifetime));
    const paths = await closeToOthers(config.dataDir);
    if (paths.length > 0)
      lifetime.log.warn({ paths }, "data directory closed to other users, who could read it");
    const redisUrl = await openRedis(config, lifetime, stops);
    const started = await role(config, { ...lifetime, redisUrl });
    stops.add(`role ${config.role}`, () => started.run());
    return stops;
  } catch (error) {
    await stops
      .run()
      .catch((fault: unknown) => lifetime.log.error({ error: textOf(fault) }, "boot was not undone"));
    throw error;
  }
}
