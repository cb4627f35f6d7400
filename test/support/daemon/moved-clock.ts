import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../browser/chromium-until.js";
import { newDirectory } from "../killed-runs.js";
import type { DaemonProcess } from "./daemon-process.js";

/** The wall clock of a daemon in a process of its own, moved for that process alone. */
export class MovedClock {
  readonly #file = join(newDirectory("clock"), "ahead-ms");

  constructor(private readonly aheadMs = 0) {}

  /** What the daemon has to be given. */
  get environment(): Record<string, string> {
    const module = join(import.meta.dirname, "moved-clock.mjs");
    return {
      NODE_OPTIONS: `--import=${module}`,
      CLOCK_AHEAD_MS: String(this.aheadMs),
      CLOCK_FILE: this.#file,
    };
  }

  /** Jumps to so far ahead of this machine's clock; less than 0 is behind. */
  async jump(daemon: DaemonProcess, aheadMs: number): Promise<void> {
    writeFileSync(this.#file, String(aheadMs));
    daemon.signal("SIGUSR2");
    await until("the clock moved", async () => !existsSync(this.#file));
  }
}
