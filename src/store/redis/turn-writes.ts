import { Redis } from "ioredis";
import type { RedisClient } from "./connect.js";

/**
 * When what one turn of the event loop asks leaves: in one write at the end of the turn, since each write may
 * have to wake Redis, which costs more than most commands. Where the turn before has asked one command alone,
 * the next is not kept until then: Redis works while the turn goes on. A cluster's client has a connection
 * for each node and is left to itself.
 */
export class TurnWrites {
  readonly #lastAsks: (() => void)[] = [];
  #corked: Redis["stream"] | undefined;
  /** How many commands the present turn has asked. */
  #asked = 0;
  /** Whether the last turn that has asked any has asked one alone. */
  #wasOneAsked = false;

  constructor(private readonly redis: RedisClient) {}

  /** Asks at the end of this turn, just before what the turn has asked is written. */
  atTurnEnd(ask: () => void): void {
    if (this.#lastAsks.push(ask) === 1) setImmediate(() => this.#endTurn());
  }

  /** Has to be called before each command. */
  gather(): void {
    if (!(this.redis instanceof Redis)) return;
    this.#asked += 1;
    if (this.#asked === 1) this.atTurnEnd(() => {});
    const leavesAtOnce = this.#asked === 1 && this.#wasOneAsked;
    if (leavesAtOnce || this.#corked === this.redis.stream) return;
    this.#corked?.uncork();
    this.#corked = this.redis.stream;
    this.#corked.cork();
  }

  #endTurn(): void {
    for (const ask of this.#lastAsks) ask();
    this.#lastAsks.length = 0;
    this.#corked?.uncork();
    this.#corked = undefined;
    this.#wasOneAsked = this.#asked <= 1;
    this.#asked = 0;
  }
}
