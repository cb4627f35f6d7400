import type { BrowserId, ClaimId, Partition, LeaseId, NodeId } from "../base/ids.js";
import type { Events } from "../base/events.js";
import { type Log, textOf } from "../base/log.js";
import type { LeaseCut, PoolSignals } from "../pool/ports/signals.js";
import type { Job, Jobs } from "../pool/ports/pool-store.js";

/**
 * What a script leaves to be done in other slots; each is repeated by a tick when this process dies before.
 */
interface Effects {
  readonly retire?: readonly { browser: BrowserId; node: NodeId; claim: ClaimId }[];
  readonly reset?: readonly { browser: BrowserId; node: NodeId; claim: ClaimId }[];
  readonly names?: readonly { name: string; owner: string }[];
  readonly ended?: readonly { lease: LeaseId; why: string; hadClient: boolean; heldMs: number }[];
  readonly cuts?: readonly Omit<LeaseCut, "partition">[];
  readonly tombstones?: readonly string[];
  readonly gone?: readonly { browser: BrowserId; node: NodeId }[];
}

export interface EffectPorts {
  readonly jobs: Jobs;
  readonly log: Log;
  readonly signals: Events<PoolSignals>;
  freeName(name: string, owner: string): Promise<void>;
  freeRoom(node: NodeId, browser: BrowserId): Promise<void>;
  moveTombstones(partition: Partition): Promise<void>;
}

const list = <Item>(items: readonly Item[] = []): readonly Item[] => items;

/** Carries out what scripts leave to be done, and knows what is still under way. */
export class EffectRunner {
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(private readonly ports: EffectPorts) {}

  /** Resolves when names and tombstones are in place; jobs and rooms follow in the background. */
  async carryOut(partition: Partition, text: string): Promise<void> {
    if (text === "") return;
    const effects = JSON.parse(text) as Effects;
    const ended = list(effects.ended);
    for (const end of ended) this.ports.signals.emit("lease.ended", { partition, ...end });
    for (const cut of list(effects.cuts)) this.ports.signals.emit("lease.cut", { partition, ...cut });
    if (effects.retire ?? effects.reset) this.#background(this.ports.jobs.add(jobsOf(effects)));
    if (effects.retire) this.ports.signals.emit("browser.retiring", { partition });
    for (const { browser, node } of list(effects.gone)) {
      this.#background(
        this.ports
          .freeRoom(node, browser)
          .then(() => this.ports.signals.emit("browser.gone", { partition, browser })),
      );
    }
    const awaited = list(effects.names).map(({ name, owner }) =>
      this.#background(this.ports.freeName(name, owner)),
    );
    if (list(effects.tombstones).length > 0)
      awaited.push(this.#background(this.ports.moveTombstones(partition)));
    if (awaited.length > 0) await Promise.all(awaited);
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #background(work: Promise<unknown>): Promise<unknown> {
    const watched = work.catch((error: unknown) =>
      this.ports.log.warn({ error: textOf(error) }, "effect left to the tick"),
    );
    this.#underWay.add(watched);
    void watched.finally(() => this.#underWay.delete(watched));
    return watched;
  }
}

const jobsOf = (effects: Effects): readonly Job[] => [
  ...list(effects.retire).map((job) => ({ kind: "retire" as const, ...job })),
  ...list(effects.reset).map((job) => ({ kind: "reset" as const, ...job })),
];
