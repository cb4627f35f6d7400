import { type Static, Type } from "typebox";
import type { Millis } from "../../base/clock.js";
import { groupBy } from "../../base/group-by.js";
import { LeaseId, Partition } from "../../base/ids.js";
import { parserOf } from "../../base/parser.js";
import { browserParser, type Lease, leaseOf } from "../../pool/browser.js";
import { Rounds } from "../../pool/rounds.js";
import type { ProjectStore, Reservation } from "../../pool/ports/project-store.js";
import { flag } from "../partition-scripts.js";
import { isPending } from "../pending.js";
import { graceMs, type ProjectScripts, sweepRound } from "./project-scripts.js";

type NameKind = "pool" | "session";
const KeptName = Type.Object({
  owner: Type.String(),
  partition: Partition,
  deadline: Type.Number(),
  key: Type.Optional(Type.String()),
});
type KeptName = Readonly<Static<typeof KeptName>>;
const heldParser = parserOf("a reservation of a name", KeptName);
const waiterParser = parserOf(
  "a waiter",
  Type.Object({ lease: LeaseId, name: Type.Optional(Type.String()) }),
);

interface HeldName extends KeptName {
  readonly field: string;
}

const mostAtOnce = 1000;

/**
 * Names compare without regard to case and accents where they are looked up (docs/api.md#lists), but are
 * unique as written.
 */
export const fieldOf = (kind: NameKind, name: string): string => `${kind}:${name}`;

/** The names of one project's pools and sessions: who has reserved or bears each. */
export class RedisProjectNames {
  readonly #rounds: Rounds<Partition>;

  constructor(private readonly scripts: ProjectScripts) {
    this.#rounds = new Rounds(scripts.clock, sweepRound);
  }

  async reserve(ask: Parameters<ProjectStore["reserveName"]>[0]): Promise<Reservation | undefined> {
    const { kind, name, owner, partition, key = "", takesOver = false } = ask;
    const field = fieldOf(kind, name);
    const args = { field, owner, partition, graceMs, key, takesOver: flag(takesOver) };
    const reply = await this.scripts.run("reserve-name", args);
    const isNew = reply.kind === "reserved";
    return isNew || reply.kind === "renewed" ? { deadline: Number(reply.payload), isNew } : undefined;
  }

  /** With `only`, a later reservation of the same owner stays. */
  async free(ask: {
    kind: NameKind;
    name: string;
    owner: string;
    only?: Pick<Reservation, "deadline">;
  }): Promise<void> {
    await this.scripts.run("free-name", {
      field: fieldOf(ask.kind, ask.name),
      owner: ask.owner,
      deadline: ask.only?.deadline ?? "",
    });
  }

  async find(
    kind: NameKind,
    name: string,
  ): Promise<{ owner: string; partition: Partition; deadline: Millis } | undefined> {
    const text = await this.scripts.ask((redis) =>
      redis.hget(this.scripts.key("names"), fieldOf(kind, name)),
    );
    return text === null ? undefined : heldParser.json(text);
  }

  /** Frees every name of an owner, whatever its deadline. */
  async freeAllOf(owner: string): Promise<void> {
    const all = Object.entries(await this.scripts.ask((redis) => redis.hgetall(this.scripts.key("names"))));
    const own = all.filter(([, text]) => heldParser.json(text).owner === owner);
    await Promise.all(own.map(([field]) => this.scripts.run("free-name", { field, owner, deadline: "" })));
  }

  /** Frees what is reserved past its deadline, and borne by nobody. */
  async sweep(): Promise<void> {
    const all = await this.scripts.ask((redis) => redis.hgetall(this.scripts.key("names")));
    const now = await this.scripts.now();
    const due = Object.entries(all)
      .map(([field, text]) => ({ field, ...heldParser.json(text) }))
      .filter(({ deadline }) => !isPending(deadline, now, graceMs));
    const byPartition = groupBy(due, ({ partition }) => partition);
    const failures = await this.#rounds.over([...byPartition.keys()], (partition) =>
      this.#sweepPartition(partition, byPartition.get(partition) ?? []),
    );
    if (failures.length > 0) throw failures[0];
  }

  async #sweepPartition(partition: Partition, held: readonly HeldName[]): Promise<void> {
    const borne = await this.#borneIn(partition, held);
    const over = held.filter(({ field, owner }) => !borne.has(`${field} ${owner}`));
    await Promise.all(
      over.map(({ field, owner, deadline }) => this.scripts.run("free-name", { field, owner, deadline })),
    );
  }

  /** All names of a partition are looked for at once, and only where one may be borne. */
  async #borneIn(partition: Partition, held: readonly HeldName[]): Promise<ReadonlySet<string>> {
    const sessions = held.filter(({ field }) => field.startsWith(fieldOf("session", "")));
    const [bySessions, byPool] = await Promise.all([
      sessions.length === 0 ? [] : this.#borneBySessions(partition, sessions),
      sessions.length === held.length ? [] : this.#borneByPool(partition),
    ]);
    return new Set([...bySessions, ...byPool]);
  }

  async #borneByPool(partition: Partition): Promise<readonly string[]> {
    const { id, name } = await this.scripts.poolRecord(partition);
    return [`${fieldOf("pool", name ?? "")} ${id}`];
  }

  /** The name of a session lives with its lease, or with the waiter that will have that lease. */
  async #borneBySessions(partition: Partition, held: readonly KeptName[]): Promise<readonly string[]> {
    // The waiter first: it becomes a lease, never the other way round.
    const waiting = await this.scripts.ask((redis) =>
      redis.hvals(this.scripts.partitionKey(partition, "waiterRecords")),
    );
    const leases = await this.#leasesOf(
      partition,
      held.map(({ owner }) => owner),
    );
    return [
      ...waiting.map((text) => waiterParser.json(text)).map(({ lease, name: theirs }) => [lease, theirs]),
      ...leases.map((lease) => [lease.id, lease.name]),
    ].map(([owner, theirs]) => `${fieldOf("session", theirs ?? "")} ${owner}`);
  }

  async #leasesOf(partition: Partition, leases: readonly string[]): Promise<readonly Lease[]> {
    const found: Lease[] = [];
    for (let from = 0; from < leases.length; from += mostAtOnce) {
      const part = leases.slice(from, from + mostAtOnce);
      const holders = await this.scripts.ask((redis) =>
        redis.hmget(this.scripts.partitionKey(partition, "leases"), ...part),
      );
      const ids = holders.filter((id) => id !== null);
      const texts =
        ids.length === 0
          ? []
          : await this.scripts.ask((redis) =>
              redis.hmget(this.scripts.partitionKey(partition, "browsers"), ...ids),
            );
      found.push(
        ...texts.flatMap((text) => (text === null ? [] : (leaseOf(browserParser.json(text)) ?? []))),
      );
    }
    return found;
  }
}
