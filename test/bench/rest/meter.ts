import type { Redis } from "ioredis";
import { pause, systemClock } from "../../../src/base/clock.js";

/** What Redis did over a while. */
export interface Reading {
  /** Processor time of Redis, in percent of one core. */
  readonly busyPercent: number;
  readonly sentPerSecond: number;
  readonly receivedPerSecond: number;
  readonly commandsPerSecond: number;
  /** The longest that one command or script kept everybody else waiting, in ms. */
  readonly longestMs: number;
  /**
   * The kinds of command that took most, and how many of each came in a second, inside scripts and outside.
   */
  readonly most: string;
}

interface Counters {
  readonly at: number;
  readonly info: ReadonlyMap<string, string>;
  readonly commands: ReadonlyMap<string, { readonly calls: number; readonly micros: number }>;
}

const numberOf = ({ info }: Counters, field: string): number => Number(info.get(field) ?? Number.NaN);

async function read(redis: Redis): Promise<Counters> {
  const text = await redis.info("everything");
  const info = new Map(
    text
      .split("\r\n")
      .filter((line) => line.includes(":"))
      .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]),
  );
  const commands = [...info].flatMap(([name, value]) => {
    const [, calls, micros] = /calls=(\d+),usec=(\d+)/.exec(value) ?? [];
    return name.startsWith("cmdstat_")
      ? [[name.slice("cmdstat_".length), { calls: Number(calls), micros: Number(micros) }] as const]
      : [];
  });
  return { at: systemClock.monotonic(), info, commands: new Map(commands) };
}

/** What is below this is nobody's trouble and not kept. */
const slowMicros = 200;

/** Measures for so long, while `meanwhile` goes on. */
export async function measure(
  redis: Redis,
  forMs: number,
  meanwhile: (until: AbortSignal) => Promise<void> = async () => {},
): Promise<Reading> {
  await redis.config("SET", "slowlog-log-slower-than", slowMicros, "slowlog-max-len", 10_000);
  await redis.slowlog("RESET");
  const before = await read(redis);
  const over = new AbortController();
  const working = meanwhile(over.signal);
  await pause(systemClock, forMs);
  over.abort();
  await working;
  const after = await read(redis);
  const slow = (await redis.slowlog("GET", 10_000)) as readonly (readonly [
    number,
    number,
    number,
    ...unknown[],
  ])[];
  const seconds = (after.at - before.at) / 1000;
  const grown = (field: string): number => (numberOf(after, field) - numberOf(before, field)) / seconds;
  return {
    busyPercent: (grown("used_cpu_user") + grown("used_cpu_sys")) * 100,
    sentPerSecond: grown("total_net_output_bytes"),
    receivedPerSecond: grown("total_net_input_bytes"),
    commandsPerSecond: grown("total_commands_processed"),
    longestMs: Math.max(slowMicros, ...slow.map(([, , micros]) => micros)) / 1000,
    most: mostOf(before, after, seconds),
  };
}

function mostOf(before: Counters, after: Counters, seconds: number): string {
  const grown = [...after.commands].map(([name, { calls, micros }]) => {
    const earlier = before.commands.get(name) ?? { calls: 0, micros: 0 };
    return { name, calls: (calls - earlier.calls) / seconds, micros: micros - earlier.micros };
  });
  return grown
    .toSorted((one, other) => other.micros - one.micros)
    .slice(0, 5)
    .map(({ name, calls }) => `${name} ${calls.toFixed(0)}`)
    .join(", ");
}
