import type { Clock, Millis } from "../base/clock.js";
import { groupBy } from "../base/group-by.js";
import type { BrowserId, Partition } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { SendDirectly } from "../pool/ports/messages.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { LeaseCut } from "../pool/ports/signals.js";

interface CutPorts {
  readonly poolStore: Pick<PoolStore, "unfinished">;
  readonly clock: Clock;
  readonly log: Log;
  readonly sendDirectly: SendDirectly;
}

interface WatchedCut extends LeaseCut {
  readonly at: Millis;
}

const lookEveryMs: Millis = 500;
/** After this time the ticks have sent the message to the node several times. */
const watchedMs: Millis = 10_000;
const sendLimitMs: Millis = 3000;

/**
 * Looks after the ends of leases that this control has decided: where the browser's node has not taken one up
 * soon, because Redis did not bring it the message, it is told directly. In health no look finds anything,
 * and each is one short command per pool.
 */
export class PendingCuts {
  #watched: WatchedCut[] = [];
  readonly #sending = new Set<BrowserId>();
  readonly #stop: () => void;

  constructor(private readonly ports: CutPorts) {
    this.#stop = ports.clock.every(lookEveryMs, () => void this.#look());
  }

  watch(cut: LeaseCut): void {
    this.#watched.push({ ...cut, at: this.ports.clock.monotonic() });
  }

  close(): void {
    this.#stop();
  }

  /** Never throws. */
  async #look(): Promise<void> {
    const now = this.ports.clock.monotonic();
    const due = this.#watched.filter(({ at }) => now - at >= lookEveryMs);
    if (due.length === 0) return;
    this.#watched = this.#watched.filter(({ at }) => now - at < lookEveryMs);
    await Promise.all(
      [...groupBy(due, ({ partition }) => partition)].map(([partition, cuts]) =>
        this.#lookAt(partition, cuts),
      ),
    );
  }

  async #lookAt(partition: Partition, cuts: readonly WatchedCut[]): Promise<void> {
    const unfinished = new Set(await this.#unfinished(partition, cuts));
    for (const cut of cuts.filter(({ message }) => unfinished.has(message.browser))) void this.#send(cut);
  }

  /** Where Redis cannot be asked, all of them count as unfinished. */
  async #unfinished(partition: Partition, cuts: readonly WatchedCut[]): Promise<readonly BrowserId[]> {
    const ids = cuts.map(({ message }) => message.browser);
    return await this.ports.poolStore.unfinished(partition, ids).catch((error: unknown) => {
      this.ports.log.debug({ partition, error: textOf(error) }, "ends of leases could not be looked after");
      return ids;
    });
  }

  /** Only one cut at a time is sent for a browser; another waits for the next look. */
  async #send(cut: WatchedCut): Promise<void> {
    const { node, message } = cut;
    if (this.#sending.has(message.browser)) return void this.#watched.push(cut);
    this.#sending.add(message.browser);
    const answer = await this.ports.sendDirectly(node, message, sendLimitMs);
    this.#sending.delete(message.browser);
    if (!answer && this.ports.clock.monotonic() - cut.at < watchedMs) this.#watched.push(cut);
  }
}
