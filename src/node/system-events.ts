import type { Chromium } from "../browser/chromium.js";
import { yieldTurn } from "../base/yield-turn.js";
import type { BrowserTelemetry } from "../telemetry/browser-telemetry.js";

/** What the name of a browser's processes is, to whoever reads of them. */
const chromium = "chromium";

type Phase = "running" | "gave_up";

interface Crashed extends Pick<Watched, "telemetry"> {
  readonly chromium: Pick<Chromium, "pid">;
}

/** Tells the holder that Chromium has ended by itself, or could not be started again. */
export function tellCrash({ telemetry, chromium: { pid } }: Crashed, phase: Phase): void {
  const data = { service_name: chromium, phase, ...(phase === "running" && { pid }) };
  const source = { kind: "local_process" } as const;
  telemetry.capture?.sink.emit({ type: "service_crashed", category: "system", source, data });
}

interface Killed {
  readonly rss_kb?: number;
  readonly kills?: number;
}

/** Tells the holder that memory has run out: of the kernel's kill only its number is known here. */
export function tellOutOfMemory({ telemetry }: Pick<Watched, "telemetry">, killed: Killed): void {
  const data = { process_name: chromium, constraint: "memcg", ...killed };
  const source = { kind: "local_process" } as const;
  telemetry.capture?.sink.emit({ type: "system_oom_kill", category: "system", source, data });
}

/** A browser, and how many of its processes the kernel had killed when that was looked at last. */
interface Watched {
  readonly telemetry: Pick<BrowserTelemetry, "capture">;
  oomKills: number;
}

/** Tells the holder of what the kernel has killed since the last look. */
export function tellOomKills(slot: Watched, kills: number): void {
  const more = kills - slot.oomKills;
  slot.oomKills = kills;
  if (more > 0) tellOutOfMemory(slot, { kills: more });
}

/**
 * Looks for what the kernel has killed in every browser, also where nobody wants to know: a holder who asks
 * later is told of none that was killed before, and of all since.
 */
export async function lookForOomKills(
  slots: readonly (Watched & { readonly chromium: Pick<Chromium, "oomKills"> })[],
): Promise<void> {
  for (const slot of slots) {
    const { chromium: running } = slot;
    const kills = await running.oomKills();
    if (slot.chromium === running) tellOomKills(slot, kills);
    await yieldTurn();
  }
}
