import { parseArgs } from "node:util";
import { type ChainHead, type Verified, verifyLog } from "../audit/verify-log.js";
import { systemClock } from "../base/clock.js";
import { textOf } from "../base/log.js";
import { Stops } from "../base/stops.js";
import { type Config, openConfig } from "../config/config.js";
import { findInstant } from "../http/time.js";
import { openLog } from "../observe/log.js";
import { RedisAuditStore } from "../store/organization/audit-store.js";
import { privateRedisPathsOf } from "../store/private/paths.js";
import { connect } from "../store/redis/connect.js";
import { ScriptStore } from "../store/redis/redis.js";
import { openKeptArchives } from "./archives.js";
import { packageRoot } from "./shared.js";
import { redisOptionsOf } from "./stores.js";

const usage = `usage: npm run audit:verify -- [--from=INSTANT] [--to=INSTANT] [--head=NUMBER:HASH]

Looks at the whole chain of the audit log's segments, and at every entry of those with requests of the range,
with the settings that the daemon has. A daemon with a Redis of its own has to be running.

  --from, --to   instants such as 2026-01-31T12:00:00Z; all that is kept unless given
  --head         what an earlier look has printed: shows whether the log was cut off or made anew since

It ends with 0 where all is as it was sealed, 1 where something is not, 2 where it could not look, or had nothing to
compare the head with, since its segment and the one after it are kept no longer.`;

interface VerifyCommand {
  readonly start: number;
  readonly end: number;
  readonly noted?: ChainHead;
}

const exitCodes = { whole: 0, faulty: 1, unable: 2 } as const;
const contactMs = 10_000;

/** The command `audit:verify` (docs/audit.md): prints what it finds, and gives the exit code. */
export async function verifyAudit(args: readonly string[], say: (line: string) => void): Promise<number> {
  if (args.includes("--help")) {
    say(usage);
    return exitCodes.whole;
  }
  let command: VerifyCommand;
  try {
    command = commandIn(args);
  } catch (error) {
    say(`${textOf(error)}\n\n${usage}`);
    return exitCodes.unable;
  }
  const opened = openConfig({ packageRoot });
  if (opened.kind === "refused") {
    say(`The configuration is refused (${opened.file}):\n${opened.faults.join("\n")}`);
    return exitCodes.unable;
  }
  try {
    const found = await look(opened.config, command);
    linesOf(found).forEach(say);
    if (found.faults.length > 0) return exitCodes.faulty;
    return found.isUncompared ? exitCodes.unable : exitCodes.whole;
  } catch (error) {
    say(`The audit log could not be looked at: ${textOf(error)}`);
    return exitCodes.unable;
  }
}

async function look(config: Config, command: VerifyCommand): Promise<Verified> {
  const { log, close } = openLog({ ...config.log, descriptor: 2, clock: systemClock });
  const stops = new Stops(systemClock, config.stop.stepMs);
  stops.add("log", () => close(config.log.flushLimitMs));
  try {
    const url = config.redis.url?.reveal() ?? (await privateRedisPathsOf(config.dataDir)).socket;
    const store = new ScriptStore(connect(redisOptionsOf(config, url)), log);
    stops.add("redis", () => store.close());
    const archives = await openKeptArchives(config, systemClock, stops);
    await store.open(AbortSignal.timeout(contactMs));
    return await verifyLog({ store: new RedisAuditStore(store, config.audit.maxBytes), archives }, command);
  } finally {
    await stops.run();
  }
}

const linesOf = ({ first, segments, entries, head, isUncompared, faults }: Verified): readonly string[] => [
  ...faults,
  `${segments} segments with ${entries} entries of the range, ${faults.length} faults`,
  ...(isUncompared ? ["the noted segment is kept no longer: nothing was compared with it"] : []),
  ...(head.number === 0
    ? ["nothing is sealed yet: all entries are in Redis, where nothing shows what was changed"]
    : [`segments kept: ${first} to ${head.number}`, `head: ${head.number}:${head.hash}`]),
];

/** Throws where something of it is not understood. */
function commandIn(args: readonly string[]): VerifyCommand {
  const options = { from: { type: "string" }, to: { type: "string" }, head: { type: "string" } } as const;
  const { from, to, head } = parseArgs({ args: [...args], options }).values;
  const start = from === undefined ? 0 : instantIn(from);
  const end = to === undefined ? Infinity : instantIn(to);
  if (end <= start) throw new Error("--to has to be after --from");
  return { start, end, ...(head !== undefined && { noted: headIn(head) }) };
}

function instantIn(text: string): number {
  const at = findInstant(text);
  if (at === undefined) throw new Error(`${text} is no instant`);
  return at;
}

function headIn(text: string): ChainHead {
  const [, number, hash] = /^([1-9]\d*):([0-9a-f]{64})$/.exec(text) ?? [];
  if (hash === undefined) throw new Error(`${text} is no NUMBER:HASH`);
  return { number: Number(number), hash };
}
