import type { Clock, Millis } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import type { BrowserId } from "../../base/ids.js";
import { isStoreAway } from "../../base/store-fault.js";
import type { NodeAddress } from "../ports.js";

interface KnownAddressesParts {
  readonly clock: Clock;
  /** A client whose address is known waits so long for what Redis says now. */
  readonly limitMs: Millis;
  /** Asks Redis; `undefined` where no other node has the browser. */
  find(browser: BrowserId): Promise<NodeAddress | undefined>;
}

/** More are not known: the one that was asked for longest ago is forgotten. */
const mostKept = 10_000;

/**
 * Finds the nodes of browsers. Where Redis cannot be asked, a client is sent to the node that had its browser
 * last: whether it is let in without Redis is for that node to say.
 */
export class KnownAddresses {
  readonly #known = new Map<BrowserId, NodeAddress>();

  constructor(private readonly parts: KnownAddressesParts) {}

  async find(browser: BrowserId): Promise<NodeAddress | undefined> {
    const { clock, limitMs } = this.parts;
    const known = this.#known.get(browser);
    const asking = this.parts.find(browser);
    if (!known) return this.#keep(browser, await asking);
    try {
      return this.#keep(
        browser,
        await within(clock, { what: "finding the browser's node", limitMs }, asking),
      );
    } catch (error) {
      if (!isStoreAway(error)) throw error;
      return known;
    }
  }

  #keep(browser: BrowserId, address: NodeAddress | undefined): NodeAddress | undefined {
    this.#known.delete(browser);
    if (address) this.#known.set(browser, address);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= mostKept) break;
      this.#known.delete(oldest);
    }
    return address;
  }
}
