import type { Chromium } from "../browser/chromium.js";
import type { Slot } from "./slot.js";

/** What the name of a browser's processes is, to whoever reads of them. */
const chromium = "chromium";

type Phase = "running" | "gave_up";

/** Tells the holder that Chromium has ended by itself, or could not be started again. */
export function tellCrash({ telemetry }: Pick<Slot, "telemetry">, phase: Phase): void {
  const data = { service_name: chromium, phase };
  const source = { kind: "local_process" } as const;
  telemetry.capture?.sink.emit({ type: "service_crashed", category: "system", source, data });
}

interface Killed {
  readonly rss_kb?: number;
  readonly kills?: number;
}

/** Tells the holder that memory has run out: of the kernel's kill only its number is known here. */
export function tellOutOfMemory({ telemetry }: Pick<Slot, "telemetry">, killed: Killed): void {
  const data = { process_name: chromium, constraint: "memcg", ...killed };
  const source = { kind: "local_process" } as const;
  telemetry.capture?.sink.emit({ type: "system_oom_kill", category: "system", source, data });
}

type Watched = Pick<Slot, "telemetry"> & { readonly chromium: Pick<Chromium, "oomKills"> };

/** Looks for what the kernel has killed in browsers whose holders want to know. */
export class OomKills {
  readonly #seen = new WeakMap<Watched["chromium"], number>();

  async look(slots: readonly Watched[]): Promise<void> {
    const watched = slots.filter(({ telemetry }) => telemetry.capture?.sink.wants("system"));
    await Promise.all(
      watched.map(async (slot) => {
        const { chromium: running } = slot;
        const kills = await running.oomKills();
        const before = this.#seen.get(running) ?? kills;
        this.#seen.set(running, kills);
        if (kills > before) tellOutOfMemory(slot, { kills: kills - before });
      }),
    );
  }
}
