import type { Clock, Millis } from "../base/clock.js";
import { type Log, textOf } from "../base/log.js";

interface ClockWatchParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Redis's clock; throws where Redis does not answer. */
  storeNow(): Promise<Millis>;
}

const lookEveryMs: Millis = 60_000;
/** People's tokens are judged with as much tolerance (`access.oidc.clock_tolerance_seconds`). */
const noticedMs: Millis = 30_000;

/**
 * Says where the wall clock of this process differs from Redis's. Nothing of Remuda's own depends on that,
 * but times that people read do, and the tokens of people.
 */
export class ClockWatch {
  #isOff = false;

  constructor(private readonly parts: ClockWatchParts) {}

  /** Looks from now on; the result stops that. */
  start(): () => void {
    return this.parts.clock.every(lookEveryMs, () => void this.aheadMs().catch(this.#missed));
  }

  /** Throws where Redis does not answer. */
  async aheadMs(): Promise<Millis> {
    const { clock, storeNow } = this.parts;
    const askedAt = clock.monotonic();
    const there = await storeNow();
    const aheadMs = Math.round(clock.now() - (clock.monotonic() - askedAt) / 2 - there);
    this.#tell(aheadMs);
    return aheadMs;
  }

  #tell(aheadMs: Millis): void {
    const isOff = Math.abs(aheadMs) > noticedMs;
    if (isOff === this.#isOff) return;
    this.#isOff = isOff;
    if (isOff) this.parts.log.warn({ aheadMs }, "this machine's clock differs from Redis's");
    else this.parts.log.info({ aheadMs }, "this machine's clock agrees with Redis's again");
  }

  readonly #missed = (error: unknown): void =>
    this.parts.log.debug({ error: textOf(error) }, "Redis's clock was not read");
}
