import type { Admitted, DeferredAdmission, JudgedKey, Principal } from "./principal.js";
import type { Rate } from "./rate-limiter.js";

interface Deferred {
  /** Whom the key let in when it came last here. */
  readonly principal: Principal;
  readonly key: JudgedKey;
  /** Looks the key up in a round trip of its own. */
  look(): Promise<Admitted>;
}

/** A class for its speed: each acquire and release makes one. */
class Admission implements DeferredAdmission {
  readonly principal: Principal;
  #letIn: Admitted | undefined;
  #looked: Promise<Admitted> | undefined;

  constructor(private readonly deferred: Deferred) {
    this.principal = deferred.principal;
  }

  due(): JudgedKey | undefined {
    return this.#letIn || this.#looked ? undefined : this.deferred.key;
  }

  letIn(rate: Rate | undefined): void {
    const { principal } = this;
    this.#letIn = rate ? { kind: "admitted", principal, rate } : { kind: "admitted", principal };
  }

  outcome(): Admitted | undefined {
    return this.#letIn;
  }

  async judge(): Promise<Admitted> {
    this.#looked ??= this.#letIn ? Promise.resolve(this.#letIn) : this.deferred.look();
    const got = await this.#looked;
    if (got.kind === "admitted") this.#letIn ??= got;
    return got;
  }
}

export const deferAdmission = (deferred: Deferred): DeferredAdmission => new Admission(deferred);
