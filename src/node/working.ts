import type { LeaseId } from "../base/ids.js";
import { failed, type Outcome } from "./outcome.js";
import type { Slot } from "./slot.js";

/**
 * Changes a browser as a whole, for its holder: in the slot's turn, and as a request in flight, so that the lease does not expire
 * and its fence waits. `signal` aborts when the lease is cut or the browser ends.
 */
export async function workFor(slot: Slot, lease: LeaseId, work: (signal: AbortSignal) => Promise<Outcome>): Promise<Outcome> {
  const cut = new AbortController();
  const signal = AbortSignal.any([cut.signal, slot.ending]);
  const begun = async (): Promise<Outcome> => {
    signal.throwIfAborted();
    return await work(signal);
  };
  let settled: Promise<unknown> = Promise.resolve();
  const visit = slot.activity.enter(lease, {
    cut: async (reason) => {
      cut.abort(new Error(reason));
      await settled;
    },
  });
  if (!visit?.confirm()) return failed("The lease is over", "browser_gone");
  const working = slot.inTurn(begun);
  settled = working.catch(() => {});
  try {
    return await working;
  } finally {
    visit.leave();
  }
}
