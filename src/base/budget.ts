export interface BudgetLimits {
  readonly browserBytes: number;
  readonly daemonBytes: number;
}

/** What one of them holds. */
export interface Account {
  set(bytes: number): void;
  close(): void;
}

interface Holder {
  readonly browser: string;
  bytes: number;
  readonly cut: () => void;
}

/**
 * The client of a browser that holds too much and is cut: the one that asks for more, or the one that has
 * most.
 */
type Victim = "asking" | "most";

/**
 * Bounds the memory that clients hold by what they send or do not read, or browsers by messages that are not
 * whole. Where one browser holds too much, one of its clients is cut; where all together do, one of the
 * browser that holds most.
 */
export class Budget {
  readonly #browsers = new Map<string, Set<Holder>>();
  #heldBytes = 0;

  constructor(
    private readonly limits: BudgetLimits,
    private readonly victim: Victim = "most",
  ) {}

  get heldBytes(): number {
    return this.#heldBytes;
  }

  open(browser: string, cut: () => void): Account {
    const holder: Holder = { browser, bytes: 0, cut };
    return { set: (bytes) => this.#set(holder, bytes), close: () => this.#forget(holder) };
  }

  #set(holder: Holder, bytes: number): void {
    if (bytes === holder.bytes) return;
    const grows = bytes > holder.bytes;
    this.#heldBytes += bytes - holder.bytes;
    holder.bytes = bytes;
    if (bytes === 0) return this.#forget(holder);
    this.#holdersOf(holder.browser).add(holder);
    if (grows) this.#check(holder);
  }

  #forget(holder: Holder): void {
    this.#heldBytes -= holder.bytes;
    holder.bytes = 0;
    const holders = this.#browsers.get(holder.browser);
    holders?.delete(holder);
    if (holders?.size === 0) this.#browsers.delete(holder.browser);
  }

  #holdersOf(browser: string): Set<Holder> {
    const holders = this.#browsers.get(browser) ?? new Set();
    this.#browsers.set(browser, holders);
    return holders;
  }

  #check(asking: Holder): void {
    const { browserBytes, daemonBytes } = this.limits;
    const own = this.#browsers.get(asking.browser) ?? new Set();
    if (sumOf(own) > browserBytes) this.#cutOne(own, asking);
    if (this.#heldBytes <= daemonBytes) return;
    const [most = own] = [...this.#browsers.values()].toSorted((one, other) => sumOf(other) - sumOf(one));
    this.#cutOne(most, asking);
  }

  #cutOne(holders: ReadonlySet<Holder>, asking: Holder): void {
    const isAsking = this.victim === "asking" && holders.has(asking);
    const [most] = isAsking ? [asking] : [...holders].toSorted((one, other) => other.bytes - one.bytes);
    if (!most) return;
    this.#forget(most);
    most.cut();
  }
}

function sumOf(holders: ReadonlySet<Holder>): number {
  let bytes = 0;
  for (const holder of holders) bytes += holder.bytes;
  return bytes;
}
