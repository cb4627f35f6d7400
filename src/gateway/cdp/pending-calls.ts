import { firstClientId } from "../../browser/cdp/frame.js";

const lastId = 2 ** 31 - 1;

/** Commands sent and not yet answered, under the id they have on the pipe. */
export class PendingCalls<Call> {
  readonly #open = new Map<number, Call>();
  #next = firstClientId;

  /** The id on the pipe: unique among all clients of the browser. */
  add(call: Call): number {
    while (this.#open.has(this.#next)) this.#advance();
    const id = this.#next;
    this.#open.set(id, call);
    this.#advance();
    return id;
  }

  take(id: number): Call | undefined {
    const call = this.#open.get(id);
    if (call !== undefined) this.#open.delete(id);
    return call;
  }

  /** Takes every call that is pending. */
  takeAll(): Call[] {
    const taken = [...this.#open.values()];
    this.#open.clear();
    return taken;
  }

  // Chromium reads ids as 32-bit integers.
  #advance(): void {
    this.#next = this.#next === lastId ? firstClientId : this.#next + 1;
  }
}
