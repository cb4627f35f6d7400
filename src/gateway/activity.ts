import type { Clock, Millis } from "../base/clock.js";
import type { LeaseId } from "../base/ids.js";

/** A connected client, a request in flight or an armed passkey, as the fence sees it. */
export interface Visitor {
  /** Cuts it at once; resolves when nothing of it can reach the browser any more. */
  cut(reason: string): Promise<void>;
  /** The browser restarts: resolves when the client has been told. Without it, it may stay. */
  interrupt?(reason: string): Promise<void>;
  /** It is neither client nor request and no activity: it stays in the browser for as long as the lease. */
  readonly isPassive?: true;
  /** A client is connected by it now, who may answer what a page asks: requests answer nothing. */
  readonly isConnected?: boolean;
}

/** A visitor's place. Counted as activity between `confirm` and `leave`. */
export interface Visit {
  /** It was registered in Redis. False: its lease was cut meanwhile and it has to be refused. */
  confirm(): boolean;
  end(): void;
}

/** Leases remembered as over, so that a late upgrade of theirs is refused without asking. */
const keptLeases = 32;

/** Knows who uses one browser, and since when nobody does (docs/api.md#activity). */
export class Activity {
  readonly #visitors = new Map<Visitor, LeaseId>();
  readonly #confirmed = new Set<Visitor>();
  readonly #over = new Map<LeaseId, string>();
  #lease: LeaseId | undefined;
  #inactiveSince: Millis;
  #registrations = 0;

  /**
   * `onBegin` is told of each new holder, `onOver` of each whose visitors are cut off; whoever cuts waits for
   * it.
   */
  constructor(
    private readonly clock: Clock,
    private readonly onBegin: (lease: LeaseId) => void = () => {},
    private readonly onOver: (lease: LeaseId) => Promise<void> = () => Promise.resolve(),
  ) {
    this.#inactiveSince = clock.monotonic();
  }

  /** The lease that holds the browser, as far as this node has heard. */
  get lease(): LeaseId | undefined {
    return this.#lease;
  }

  /**
   * The instant (monotonic clock) since which no client is connected and no request in flight; undefined
   * while there is one.
   */
  get inactiveSinceMs(): Millis | undefined {
    return this.#confirmed.size > 0 ? undefined : this.#inactiveSince;
  }

  /** How many clients and requests of the present lease were ever registered. */
  get registrations(): number {
    return this.#registrations;
  }

  /** Whether the lease has the browser, and a client or request of it was registered here. */
  wasOpened(lease: LeaseId): boolean {
    return this.#lease === lease && this.#registrations > 0;
  }

  /** Whether any client or request has entered, confirmed or not yet. */
  get hasVisitors(): boolean {
    return [...this.#visitors.keys()].some(({ isPassive }) => !isPassive);
  }

  /** Whether a client is connected that may answer what pages ask. */
  get hasClients(): boolean {
    return [...this.#visitors.keys()].some(({ isConnected }) => isConnected === true);
  }

  /**
   * Leases that are known here beside `lease` and not yet cut off: of two only one can be the record's
   * (lease-handover.ts).
   */
  rivalsOf(lease: LeaseId | undefined): readonly LeaseId[] {
    const known = [...this.#confirmed].flatMap((visitor) => this.#visitors.get(visitor) ?? []);
    return [...new Set([...(this.#lease ? [this.#lease] : []), ...known])].filter((other) => other !== lease);
  }

  /** A new holder, since `agoMs`: the clock starts there. Harmless when told twice. */
  begin(lease: LeaseId, agoMs: Millis = 0): void {
    if (this.#lease === lease || this.#over.has(lease)) return;
    this.#lease = lease;
    this.#registrations = 0;
    // The grant lies in the future where Redis's clock has been set back since; then it counts as just
    // granted.
    this.#inactiveSince = this.clock.monotonic() - Math.max(0, agoMs);
    this.onBegin(lease);
  }

  isOver(lease: LeaseId): boolean {
    return this.#over.has(lease);
  }

  /** Why a lease is over, as its cut said. */
  whyOver(lease: LeaseId): string | undefined {
    return this.#over.get(lease);
  }

  /** From this call on a cut reaches the visitor; `undefined` where its lease is over. */
  enter(lease: LeaseId, visitor: Visitor): Visit | undefined {
    if (this.#over.has(lease)) return undefined;
    this.#visitors.set(visitor, lease);
    return { confirm: () => this.#confirm(lease, visitor), end: () => this.#remove(visitor) };
  }

  #confirm(lease: LeaseId, visitor: Visitor): boolean {
    if (this.#over.has(lease) || !this.#visitors.has(visitor)) return false;
    this.begin(lease);
    this.#confirmed.add(visitor);
    this.#registrations += 1;
    return true;
  }

  #remove(visitor: Visitor): void {
    this.#visitors.delete(visitor);
    if (this.#confirmed.delete(visitor)) this.#inactiveSince = this.clock.monotonic();
  }

  /**
   * The fence: every socket, pending upgrade and request of the lease is cut; it throws where one could not
   * be.
   */
  async cutLease(lease: LeaseId, reason: string): Promise<void> {
    this.#remember(lease, reason);
    if (this.#lease === lease) this.#lease = undefined;
    const visitors = [...this.#visitors].filter(([, theirs]) => theirs === lease).map(([visitor]) => visitor);
    const ends = await Promise.allSettled(visitors.map((visitor) => visitor.cut(reason)));
    for (const visitor of visitors) this.#remove(visitor);
    await this.onOver(lease);
    const failures = ends.flatMap((end) => (end.status === "rejected" ? [end.reason as unknown] : []));
    if (failures.length > 0)
      throw new AggregateError(failures, `${failures.length} of ${visitors.length} could not be cut`);
  }

  /** Tells clients that the browser restarts. Never rejects: what they leave goes with Chromium. */
  async interrupt(reason: string): Promise<void> {
    await Promise.allSettled([...this.#visitors.keys()].map((visitor) => visitor.interrupt?.(reason)));
  }

  #remember(lease: LeaseId, reason: string): void {
    if (!this.#over.has(lease)) this.#over.set(lease, reason);
    for (const oldest of this.#over.keys()) {
      if (this.#over.size <= keptLeases) break;
      this.#over.delete(oldest);
    }
  }
}
