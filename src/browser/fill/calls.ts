import type { Clock, Millis } from "../../base/clock.js";
import { TimeLimitReached } from "../../base/deadline.js";
import type { FillErrorCode, FillRefusal } from "../../spec/page-fill.js";
import { type Cdp, type CdpMethod, type CdpParams, CdpRefused } from "../cdp/cdp.js";

/** A fill ends here, with what the field that it was at is given as its code. */
export class FillStopped extends Error {
  constructor(readonly code: FillErrorCode) {
    super(code);
    this.name = "FillStopped";
  }
}

/** Nothing was written, and nothing will be. */
export class FillRefused extends Error {
  constructor(readonly why: FillRefusal) {
    super(why);
    this.name = "FillRefused";
  }
}

/** Where a call's target was gone before the call began. Chromium 156 says it so. */
const neverBegun =
  /^(?:Could not find object with given id|Cannot find context with specified id|Session with given id not found|Target is closed)/;

/** Whether a call that was refused has certainly done nothing in the page. */
export const hasNotBegun = (error: unknown): boolean =>
  error instanceof CdpRefused && neverBegun.test(error.reason);

/** What the field that a fill is at is told of an error; never the error's own words. */
export function codeOf(error: unknown): FillErrorCode {
  if (error instanceof FillStopped) return error.code;
  if (error instanceof TimeLimitReached) return "timeout";
  return error instanceof CdpRefused && isOfGoneTarget(error) ? "target_changed" : "execution_failed";
}

const isOfGoneTarget = (error: CdpRefused): boolean =>
  hasNotBegun(error) || /destroyed|navigated|closed|detached|not attached/i.test(error.reason);

/** A function that has run in a page. */
interface CallAnswer {
  readonly result: { readonly value?: unknown; readonly objectId?: string | undefined };
  readonly exceptionDetails?: unknown;
}

/** The commands of one fill: all of them within its one deadline, and until its lease is cut. */
export class FillCalls {
  readonly #endsAt: Millis;
  readonly #cut: Promise<never>;

  constructor(
    readonly cdp: Cdp,
    readonly clock: Clock,
    { timeoutMs, signal }: { timeoutMs: Millis; signal: AbortSignal },
  ) {
    this.#endsAt = clock.monotonic() + timeoutMs;
    this.#cut = new Promise((_, reject) => {
      const cut = (): void => reject(new FillStopped("execution_failed"));
      if (signal.aborted) cut();
      else signal.addEventListener("abort", cut, { once: true });
    });
    this.#cut.catch(() => {});
  }

  /** What is left of the deadline. */
  get leftMs(): Millis {
    return Math.max(0, this.#endsAt - this.clock.monotonic());
  }

  async send<M extends CdpMethod>(method: M, params: CdpParams<M>, session?: string) {
    const limitMs = this.leftMs;
    if (limitMs === 0) throw new FillStopped("timeout");
    return await this.untilCut(
      this.cdp.send(method, params, { ...(session !== undefined && { session }), limitMs }),
    );
  }

  /** Waits for something, but no longer than the lease lasts. */
  untilCut<Result>(work: Promise<Result>): Promise<Result> {
    return Promise.race([work, this.#cut]);
  }

  /** Calls one of `inPageCalls`. What is given goes beside the function, and never into its text. */
  async call(
    { object, session }: { object: string; session: string },
    functionDeclaration: string,
    given: readonly unknown[] = [],
  ): Promise<unknown> {
    const answer = await this.send(
      "Runtime.callFunctionOn",
      {
        objectId: object,
        functionDeclaration,
        arguments: given.map((value) => ({ value })),
        returnByValue: true,
        silent: true,
      },
      session,
    );
    return returned(answer).value;
  }
}

export function returned({ result, exceptionDetails }: CallAnswer): CallAnswer["result"] {
  if (exceptionDetails !== undefined) throw new FillStopped("execution_failed");
  return result;
}
