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
  /** The kinds of command that took most, with their part of the busy time. */
  readonly most: string;
}

interface Counters {
  readonly at: number;
  readonly info: ReadonlyMap<string, string>;
  readonly commands: ReadonlyMap<string, number>;
}

const numberOf = ({ info }: Counters, field: string): number => Number(info.get(field) ?? Number.NaN);

async function read(redis: Redis): Promise<Counters> {
  const text = await redis.info("everything");
  const info = new Map(text.split("\r\n").filter((line) => line.includes(":")).map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]));
  const commands = [...info].flatMap(([name, value]) => {
    const micros = /usec=(\d+)/.exec(value)?.[1];
    return name.startsWith("cmdstat_") && micros !== undefined ? [[name.slice("cmdstat_".length), Number(micros)] as const] : [];
  });
  return { at: systemClock.monotonic(), info, commands: new Map(commands) };
}

/** What is below this is nobody's trouble and not kept. */
const slowMicros = 200;

/** Measures for so long, while `meanwhile` goes on. */
export async function measure(redis: Redis, forMs: number, meanwhile: (until: AbortSignal) => Promise<void> = async () => {}): Promise<Reading> {
  await redis.config("SET", "slowlog-log-slower-than", slowMicros, "slowlog-max-len", 10_000);
  await redis.slowlog("RESET");
  const before = await read(redis);
  const over = new AbortController();
  const working = meanwhile(over.signal);
  await pause(systemClock, forMs);
  over.abort();
  await working;
  const after = await read(redis);
  const slow = (await redis.slowlog("GET", 10_000)) as readonly (readonly [number, number, number, ...unknown[]])[];
  const seconds = (after.at - before.at) / 1000;
  const grown = (field: string): number => (numberOf(after, field) - numberOf(before, field)) / seconds;
  return {
    busyPercent: (grown("used_cpu_user") + grown("used_cpu_sys")) * 100,
    sentPerSecond: grown("total_net_output_bytes"), receivedPerSecond: grown("total_net_input_bytes"),
    commandsPerSecond: grown("total_commands_processed"),
    longestMs: Math.max(slowMicros, ...slow.map(([, , micros]) => micros)) / 1000,
    most: mostOf(before, after, seconds),
  };
}

function mostOf(before: Counters, after: Counters, seconds: number): string {
  const grown = [...after.commands].map(([name, micros]) => [name, (micros - (before.commands.get(name) ?? 0)) / seconds / 10_000] as const);
  return grown.toSorted(([, one], [, other]) => other - one).slice(0, 3).map(([name, percent]) => `${name} ${percent.toFixed(2)}`).join(", ");
}
