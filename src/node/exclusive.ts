import type { Clock, Millis } from "../base/clock.js";
import { abortWith, untilAborted, within } from "../base/deadline.js";
import type { LeaseId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
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

/** What is still at work on a browser that is to end has so long; then the browser ends all the same. */
const restLimitMs: Millis = 15_000;
/** A restart of a browser that is to be saved has so long; the rest of that is for clearing up after it. */
const restartLimitMs: Millis = 10_000;
/** What a restart that was given up has for clearing up. */
const hurriedRestMs: Millis = 2_000;

interface RestPorts {
  readonly clock: Clock;
  readonly log: Log;
  /** Abort when nobody waits any more for what is at work. */
  readonly givenUp: readonly AbortSignal[];
}

/** Cuts whoever uses a browser that is to end, and waits until nothing is at work on it, or too long. */
export async function comeToRest(slot: Slot, { clock, log, givenUp }: RestPorts): Promise<void> {
  const [hurried, late] = [new AbortController(), new AbortController()];
  const cancels: (() => void)[] = [clock.after(restartLimitMs, () => slot.restartHalt.abort())];
  hurried.signal.addEventListener("abort", () => {
    slot.restartHalt.abort();
    cancels.push(clock.after(hurriedRestMs, () => late.abort(new Error("nobody waits for it any more"))));
  });
  cancels.push(abortWith(hurried, givenUp));
  const rest = untilAborted(late.signal, slot.comeToRest());
  await within(clock, { what: "coming to rest", limitMs: restLimitMs }, rest).catch((error: unknown) =>
    log.warn({ browser: slot.id, error: textOf(error) }, "browser ended while something was at work on it"),
  );
  for (const cancel of cancels) cancel();
}
