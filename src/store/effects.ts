import { type Static, type TSchema, Type } from "typebox";
import { BrowserId, ClaimId, isOnDemand, LeaseId, NodeId, type Partition } from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import type { Events } from "../base/events.js";
import { type Log, textOf } from "../base/log.js";
import { CutMessage } from "../pool/ports/messages.js";
import type { PoolSignals } from "../pool/ports/signals.js";
import type { CapturedEnd, Job, Jobs } from "../pool/ports/pool-store.js";

/**
 * What a script leaves to be done in other slots; each is repeated by a tick when this process dies before.
 */
const OfBrowser = Type.Object({ browser: BrowserId, node: NodeId, claim: ClaimId });
const some = <const Item extends TSchema>(item: Item) => Type.Optional(Type.Array(item));
const Effects = Type.Object({
  retire: some(OfBrowser),
  reset: some(OfBrowser),
  names: some(Type.Object({ name: Type.String(), owner: Type.String() })),
  ended: some(
    Type.Object({
      lease: LeaseId,
      node: NodeId,
      why: Type.String(),
      hadClient: Type.Boolean(),
      heldMs: Type.Number(),
      /**
       * Where it may have captured events: the key of its launch template, what the lease has changed of it,
       * and what it was part of.
       */
      captured: Type.Optional(
        Type.Object({
          templateKey: Type.String(),
          telemetry: Type.Optional(Type.String()),
          trace: Type.Optional(Type.String()),
        }),
      ),
    }),
  ),
  cuts: some(Type.Object({ node: NodeId, message: CutMessage })),
  tombstones: some(Type.String()),
  gone: some(Type.Object({ browser: BrowserId, node: NodeId })),
});
type Effects = Static<typeof Effects>;
const effectsParser = parserOf("what a script leaves to be done", Effects);

interface EffectPorts {
  readonly jobs: Jobs;
  readonly log: Log;
  readonly signals: Events<PoolSignals>;
  freeName(name: string, owner: string, partition: Partition): Promise<void>;
  /** Gives back the place of a session on demand that is over. */
  freeSession(lease: LeaseId, partition: Partition): Promise<void>;
  freeRoom(node: NodeId, browser: BrowserId): Promise<void>;
  moveTombstones(partition: Partition): Promise<void>;
}

/** The lease that a script has ended, where it may have captured events. */
export function capturedIn(effects: string): CapturedEnd | undefined {
  if (!effects.includes('"captured":')) return undefined;
  const end = effectsParser.json(effects).ended?.find(({ captured }) => captured !== undefined);
  return end?.captured && { lease: end.lease, ...end.captured };
}

const list = <Item>(items: readonly Item[] = []): readonly Item[] => items;

/** Carries out what scripts leave to be done, and knows what is still under way. */
export class EffectRunner {
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(private readonly ports: EffectPorts) {}

  /** Resolves when names, places and tombstones are in place; jobs and rooms follow in the background. */
  async carryOut(partition: Partition, text: string): Promise<void> {
    if (text === "") return;
    const effects = effectsParser.json(text);
    const ended = list(effects.ended);
    for (const end of ended) this.ports.signals.emit("lease.ended", endOf(partition, end));
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
      this.#background(this.ports.freeName(name, owner, partition)),
    );
    if (isOnDemand(partition))
      awaited.push(...ended.map(({ lease }) => this.#background(this.ports.freeSession(lease, partition))));
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

const endOf = (
  partition: Partition,
  { lease, node, why, hadClient, heldMs }: NonNullable<Effects["ended"]>[number],
): PoolSignals["lease.ended"] => ({ partition, lease, node, why, hadClient, heldMs });

const jobsOf = (effects: Effects): readonly Job[] => [
  ...list(effects.retire).map((job) => ({ kind: "retire" as const, ...job })),
  ...list(effects.reset).map((job) => ({ kind: "reset" as const, ...job })),
];
