import type { Chromium } from "../browser/chromium.js";
import { yieldTurn } from "../base/yield-turn.js";
import type { MemoryUse } from "../browser/resources/cgroup-memory.js";
import type { KilledProcess } from "../browser/resources/kernel-log.js";
import type { BrowserTelemetry } from "../telemetry/browser-telemetry.js";

/** What the name of a browser's processes is, to whoever reads of them. */
const chromium = "chromium";

type Phase = "running" | "gave_up";

interface Crashed extends Pick<KillableBrowser, "telemetry"> {
  readonly chromium: Pick<Chromium, "pid">;
}

/** Tells the holder that Chromium has ended by itself, or could not be started again. */
export function tellCrash({ telemetry, chromium: { pid } }: Crashed, phase: Phase): void {
  const data = { service_name: chromium, phase, ...(phase === "running" && { pid }) };
  const source = { kind: "local_process" } as const;
  telemetry.capture?.sink.emit({ type: "service_crashed", category: "system", source, data });
}

/** A process that was killed for want of memory, as far as that is known. */
interface Killed {
  readonly pid: number;
  readonly process_name?: string;
  readonly rss_kb: number;
  readonly constraint?: KilledProcess["constraint"];
  /** How many it stands for, where not all are told one by one. */
  readonly kills?: number;
}

/** Tells the holder that memory has run out. */
export function tellOutOfMemory({ telemetry }: Pick<KillableBrowser, "telemetry">, killed: Killed): void {
  const data = { process_name: chromium, constraint: "memcg", ...killed };
  const source = { kind: "local_process" } as const;
  telemetry.capture?.sink.emit({ type: "system_oom_kill", category: "system", source, data });
}

/** A browser whose processes the kernel may kill. */
interface KillableBrowser {
  readonly telemetry: Pick<BrowserTelemetry, "capture">;
  readonly chromium: Pick<Chromium, "pid">;
  /** How many of those killed were told, or are told to nobody. */
  oomKills: number;
  /** How many there were when the last look waited for lines of the kernel's log. */
  awaitedOomKills: number;
}

/** So many are told one by one at one look; a page may have others killed as fast as it makes them. */
const mostTold = 20;

/** Tells the holder of what the kernel has killed since the last look: of all, or of the first `kills`. */
export function tellOomKills(
  slot: KillableBrowser,
  memory: MemoryUse | undefined,
  kills = memory?.outOfMemoryKills ?? slot.oomKills,
): void {
  const { killed = [] } = memory ?? {};
  const before = slot.oomKills;
  slot.oomKills = Math.max(before, kills);
  const told = Math.min(kills - before, mostTold);
  for (let at = 0; at < told; at += 1) {
    const known = killed[before + at];
    const rest = at === told - 1 ? kills - before - at : 1;
    tellOutOfMemory(slot, {
      ...(known ? wordsOf(known) : guess(slot, memory)),
      ...(rest > 1 && { kills: rest }),
    });
  }
}

/**
 * How many may be told at a look. Linux counts a process before it writes the line of it into its log (6.18,
 * `__oom_kill_process` in mm/oom_kill.c), so what the log lacks is left to the next look, once.
 */
function tellable(slot: KillableBrowser, memory: MemoryUse): number {
  const { outOfMemoryKills: kills = slot.oomKills, killed = [], knowable = 0 } = memory;
  const settled = Math.max(slot.oomKills, killed.length, slot.awaitedOomKills);
  // Nobody is told later of what was killed before they wanted to know.
  if (settled >= knowable || !slot.telemetry.capture) return kills;
  slot.awaitedOomKills = kills;
  return settled;
}

const wordsOf = ({ pid, name, residentBytes, constraint }: KilledProcess): Killed => ({
  pid,
  process_name: name,
  rss_kb: Math.round(residentBytes / 1024),
  constraint,
});

/** A cgroup counts kills and names none. What was killed had no more than the browser has less since. */
function guess(
  { chromium: { pid } }: KillableBrowser,
  { bytes = 0, peakBytes = bytes }: Partial<MemoryUse> = {},
): Killed {
  return { pid, rss_kb: Math.max(0, Math.round((peakBytes - bytes) / 1024)) };
}

type CountedBrowser = KillableBrowser & {
  readonly chromium: Pick<Chromium, "pid" | "memory" | "outOfMemoryKills">;
};

/**
 * Looks for what the kernel has killed in every browser, also where nobody wants to know: a holder who asks
 * later is told of none that was killed before, and of all since.
 */
export async function lookForOomKills(slots: readonly CountedBrowser[]): Promise<void> {
  for (const slot of slots) {
    const memory = await memoryAfterKills(slot);
    if (memory) tellOomKills(slot, memory, tellable(slot, memory));
    await yieldTurn();
  }
}

/**
 * The same in one browser, whose lease ends: what was killed by now is told to its holder, and not to the
 * next. The kernel counts a process before it ends it, so that who has seen a page crash finds it counted.
 */
export async function lookForLastOomKills(slot: CountedBrowser): Promise<void> {
  const memory = await memoryAfterKills(slot);
  if (memory) tellOomKills(slot, memory);
}

/** Undefined where nothing was killed since the last look, or another Chromium runs by now. */
async function memoryAfterKills(slot: CountedBrowser): Promise<MemoryUse | undefined> {
  const { chromium: running } = slot;
  // Nearly always nothing was killed, and the rest of what is counted is not read.
  if ((running.outOfMemoryKills() ?? 0) <= slot.oomKills) return undefined;
  const memory = await running.memory();
  return slot.chromium === running ? memory : undefined;
}

/** A lease begins: what was killed before that is told to nobody. */
export function passOverOomKills(slot: CountedBrowser): void {
  slot.oomKills = Math.max(slot.oomKills, slot.chromium.outOfMemoryKills() ?? 0);
}
