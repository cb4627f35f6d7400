import type { Command } from "./command.js";
import type { CdpSessions } from "./sessions.js";

/** CDP sessions at once, those of clients' roots not counted. */
export interface SessionLimits {
  readonly client: number;
  readonly browser: number;
}

export const usualSessions: SessionLimits = { client: 1000, browser: 4000 };
/** Commands of one client without an answer: Playwright sends one for each element of a list, all at once. */
const mostCalls = 10_000;
const attaching: ReadonlySet<string> = new Set(["Target.attachToTarget", "Target.attachToBrowserTarget"]);

/** Counts by owner. */
class OwnerCounts<Owner> {
  readonly #counts = new Map<Owner, number>();

  of(owner: Owner): number {
    return this.#counts.get(owner) ?? 0;
  }

  get all(): number {
    let all = 0;
    for (const count of this.#counts.values()) all += count;
    return all;
  }

  add(owner: Owner, count: 1 | -1): void {
    this.#counts.set(owner, this.of(owner) + count);
  }

  forget(owner: Owner): void {
    this.#counts.delete(owner);
  }
}

/** What each client of a browser has asked for without an answer, and what it may. */
export class SessionQuotas<Owner> {
  readonly #calls = new OwnerCounts<Owner>();
  /** Sessions that were asked for. */
  readonly #coming = new OwnerCounts<Owner>();

  constructor(
    private readonly sessions: Pick<CdpSessions<Owner>, "countOf" | "count">,
    private readonly limits: SessionLimits,
    /** Sessions that clients have left and the browser has not ended yet. */
    private readonly left: () => number = () => 0,
  ) {}

  whyRefused(owner: Owner, { method }: Command): string | undefined {
    if (this.#calls.of(owner) >= mostCalls) return `More than ${mostCalls} commands wait for their answers`;
    if (!attaching.has(method)) return undefined;
    const { client, browser } = this.limits;
    if (this.sessions.countOf(owner) + this.#coming.of(owner) >= client)
      return `A client may have ${client} CDP sessions at once`;
    return this.#ofBrowser + this.#coming.all >= browser
      ? `The clients of a browser may have ${browser} CDP sessions at once`
      : undefined;
  }

  /** Counts the targets that were attached unasked, as `Target.setAutoAttach` has it. */
  hasTooMany(owner: Owner): boolean {
    return this.sessions.countOf(owner) > this.limits.client || this.#ofBrowser > this.limits.browser;
  }

  get #ofBrowser(): number {
    return this.sessions.count + this.left();
  }

  asked(owner: Owner, method: string): void {
    this.#calls.add(owner, 1);
    if (attaching.has(method)) this.#coming.add(owner, 1);
  }

  /** Does nothing for owners that were forgotten. */
  answered(owner: Owner, method: string): void {
    if (this.#calls.of(owner) === 0) return;
    this.#calls.add(owner, -1);
    if (attaching.has(method)) this.#coming.add(owner, -1);
  }

  forget(owner: Owner): void {
    this.#calls.forget(owner);
    this.#coming.forget(owner);
  }
}
