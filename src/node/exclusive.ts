import type { LeaseId } from "../base/ids.js";
import type { Visit } from "../gateway/activity.js";
import { failed, type CommandResult } from "../gateway/relay/command-result.js";
import type { Slot } from "./slot.js";

/**
 * Does something to a browser for its holder: whoever cuts the lease waits until that has settled, so that
 * nothing of it reaches the next holder. `signal` aborts when the lease is cut or the browser ends. Undefined
 * where the lease is over.
 */
export async function runAsVisitor<Result>(
  slot: Slot,
  lease: LeaseId,
  work: (signal: AbortSignal, visit: Visit) => Promise<Result>,
): Promise<Result | undefined> {
  const cut = new AbortController();
  const signal = AbortSignal.any([cut.signal, slot.ending]);
  let settled: Promise<unknown> = Promise.resolve();
  const visit = slot.activity.enter(lease, {
    cut: async (reason) => {
      cut.abort(new Error(reason));
      await settled;
    },
  });
  if (!visit) return undefined;
  const running = work(signal, visit);
  settled = running.catch(() => {});
  try {
    return await running;
  } finally {
    visit.end();
  }
}

/**
 * Changes a browser as a whole: in the slot's turn, and as a request in flight, so that the lease does not
 * expire.
 */
export async function runExclusively(
  slot: Slot,
  lease: LeaseId,
  work: (signal: AbortSignal) => Promise<CommandResult>,
): Promise<CommandResult> {
  const commandResult = await runAsVisitor(slot, lease, async (signal, visit) => {
    if (!visit.confirm()) return undefined;
    return await slot.inTurn(async () => {
      signal.throwIfAborted();
      return await work(signal);
    });
  });
  return commandResult ?? failed("The lease is over", "browser_gone");
}
