import type { Clock, Millis } from "../base/clock.js";
import { type Log, textOf } from "../base/log.js";
import type { NodeId } from "../base/ids.js";
import { attemptEach, shareRuns } from "../base/concurrently.js";
import type { LivingNode, NodeStore } from "./ports/node-store.js";
import type { PoolStore } from "./ports/pool-store.js";
import type { Projects } from "./ports/project-store.js";

interface SilentNodePorts {
  readonly poolStore: Pick<PoolStore, "silenceNode">;
  readonly projects: Pick<Projects, "partitions">;
  readonly nodes: Pick<NodeStore, "living">;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether the node's server answers; undefined where it could not be asked. Never throws. */
  answers(node: LivingNode): Promise<boolean | undefined>;
  /**
   * How long a node counts as silent unless it is found so again: a control that dies cannot say any more
   * that the node answers.
   */
  readonly keptMs: Millis;
  readonly lookEveryMs: Millis;
}

const partitionsAtOnce = 32;

/** A node that has answered is not asked again within this time because of a lease that nobody used. */
const trustedMs: Millis = 250;

type HostAndPort = Pick<LivingNode, "host" | "port">;
const placeOf = ({ host, port }: HostAndPort): string => `${host} ${port}`;

/**
 * Finds nodes that do not answer, whose browsers are lent to nobody until they do. A node is suspected where
 * a client could not be sent on to it, where a lease ended that no client had used, or where its beat is
 * late; only the time after which it is lost ends its leases.
 */
export class SilentNodes {
  /** The instant (monotonic) at which each was last marked as silent. */
  readonly #silent = new Map<NodeId, Millis>();
  /** The instant (monotonic) at which each that was asked has last answered. */
  readonly #heardAt = new Map<NodeId, Millis>();
  /** The nodes, by id or by place, that have become suspected since the last look began. */
  #suspects = new Set<string>();
  /** Those that the look under way is at: it hears of them what whoever suspects them meanwhile would. */
  #examined: ReadonlySet<string> = new Set();
  /** The living nodes that the last look found. */
  #living: ReadonlyMap<NodeId, LivingNode> = new Map();

  constructor(private readonly ports: SilentNodePorts) {}

  /** Looks again and again; gives what ends that. */
  begin(): () => void {
    return this.ports.clock.every(this.ports.lookEveryMs, () => void this.look());
  }

  /** A node as its beat was read last, which is known while Redis is away as well. */
  lastKnown(node: NodeId): LivingNode | undefined {
    return this.#living.get(node);
  }

  /** A client could not be sent on to whoever has this address. */
  suspect(address: HostAndPort): void {
    this.#suspect(placeOf(address));
  }

  /**
   * A lease on it has ended that no client had used. Its browser may be lent again without a word from the
   * node, which says nothing where it is gone.
   */
  suspectUnused(node: NodeId): void {
    if (this.#examined.has(node)) return;
    const heardAt = this.#heardAt.get(node);
    if (heardAt === undefined || this.ports.clock.monotonic() - heardAt >= trustedMs) this.#suspect(node);
  }

  #suspect(who: string): void {
    this.#suspects.add(who);
    void this.look();
  }

  /**
   * Looks at nodes that are late, suspected, or were silent. One look at a time, so that the last mark is
   * what was seen last; all who ask during a look share the next. Never throws.
   */
  readonly look: () => Promise<void> = shareRuns(() => this.#look());

  async #look(): Promise<void> {
    const suspects = this.#suspects;
    this.#suspects = new Set();
    this.#examined = suspects;
    try {
      await this.#lookAt(
        (node) =>
          node.isLate || this.#silent.has(node.id) || suspects.has(node.id) || suspects.has(placeOf(node)),
      );
    } catch (error) {
      this.ports.log.warn({ error: textOf(error) }, "silent nodes could not be looked for");
    } finally {
      this.#examined = new Set();
    }
  }

  async #lookAt(isMeant: (node: LivingNode) => boolean): Promise<void> {
    const living = await this.ports.nodes.living();
    this.#living = new Map(living.map((node) => [node.id, node]));
    this.#forgetLost(this.#silent);
    this.#forgetLost(this.#heardAt);
    await Promise.all(
      living.filter(isMeant).map(async (node) => {
        const isHeard = node.isLate ? false : await this.ports.answers(node);
        // A node that could not be asked stays marked as it was.
        if (isHeard !== undefined) await (isHeard ? this.#heard(node) : this.#silenced(node));
      }),
    );
  }

  #forgetLost(kept: Map<NodeId, Millis>): void {
    for (const id of kept.keys()) if (!this.#living.has(id)) kept.delete(id);
  }

  async #silenced({ id, isLate }: LivingNode): Promise<void> {
    const { clock, log, keptMs } = this.ports;
    const markedAt = this.#silent.get(id);
    if (markedAt === undefined)
      log.warn({ node: id, isLate }, "node does not answer: its browsers are not lent");
    if (markedAt !== undefined && clock.monotonic() - markedAt < keptMs / 3) return;
    // Where a pool cannot be told of it, the next look tells all of them.
    this.#silent.set(id, -Infinity);
    await this.#silence(id, keptMs);
    this.#silent.set(id, clock.monotonic());
  }

  async #heard({ id }: LivingNode): Promise<void> {
    this.#heardAt.set(id, this.ports.clock.monotonic());
    if (!this.#silent.has(id)) return;
    await this.#silence(id, 0);
    this.#silent.delete(id);
    this.ports.log.info({ node: id }, "node answers again");
  }

  async #silence(node: NodeId, silentMs: Millis): Promise<void> {
    const { poolStore, projects } = this.ports;
    await attemptEach(await projects.partitions(), partitionsAtOnce, (partition) =>
      poolStore.silenceNode(partition, node, silentMs),
    );
  }
}
