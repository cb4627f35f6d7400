import type { Seal } from "../base/crypto/seal.js";
import type { Done, Refusal } from "../base/errors.js";
import type { LeaseId } from "../base/ids.js";
import type { FillContext } from "../browser/fill/fill-page.js";
import { failed, type CommandResult } from "../gateway/relay/command-result.js";
import { fillOwner, type PageFill, type PageFillOutcome } from "../spec/page-fill.js";
import { runAsVisitor } from "./exclusive.js";
import type { Slot } from "./slot.js";

interface PageFillPorts {
  readonly seal: Pick<Seal, "open">;
  /** Opens the values that an order names. */
  openFill(order: string): Promise<Done<PageFill> | Refusal>;
  /** Refused where the order comes too late by now. */
  refuseLate(order: string): Promise<Refusal | undefined>;
}

/** Writes values of vaults into pages for the holders of browsers. */
export class PageFills {
  constructor(private readonly ports: PageFillPorts) {}

  /** `sealed`: an order that was sealed for this lease. The reply has the JSON of a `PageFillOutcome`. */
  async fill(slot: Slot, lease: LeaseId, sealed: string): Promise<CommandResult> {
    const order = this.ports.seal.open(sealed, fillOwner(slot.id, lease));
    if (order.kind !== "opened")
      return failed("The order was sealed with another key, or for another lease", "secret_unreadable");
    const opened = await this.ports.openFill(order.text.reveal());
    if (opened.kind === "refused") return failed(opened.message, opened.code);
    const result = await runAsVisitor(slot, lease, async (signal, visit) => {
      if (!visit.confirm()) return undefined;
      const late = await this.#refuseAfterRestart(slot, order.text.reveal());
      if (late) return failed(late.message, late.code);
      return resultOf(await fillPage(slot, opened.value, signal));
    });
    return result ?? resultOf({ kind: "refused", why: "browser_gone" });
  }

  /** A restart takes longer than an order may be on its way. */
  async #refuseAfterRestart(slot: Slot, order: string): Promise<Refusal | undefined> {
    while (slot.restarting) {
      await slot.restarting;
      const late = await this.ports.refuseLate(order);
      if (late) return late;
    }
    return undefined;
  }
}

const resultOf = (outcome: PageFillOutcome): CommandResult => ({
  isDone: true,
  payload: JSON.stringify(outcome),
});

async function fillPage(slot: Slot, fill: PageFill, signal: AbortSignal): Promise<PageFillOutcome> {
  const around = fill.protect_filled ? protecting(slot) : holding(slot);
  try {
    return await slot.chromium.fillPage(fill, { signal, ...around });
  } finally {
    around.end?.();
  }
}

/** What a fill is given, and what is to be called when it is over. */
interface FillHooks extends Omit<FillContext, "signal"> {
  end?(): void;
}

const holding = ({ bridge }: Slot): FillHooks => ({ hold: (targets) => bridge.holds.hold(targets) });

/**
 * The page is protected before the first write, until it shows another document. The watch for that begins
 * before anything of it is looked at: what is filled is the document that is watched.
 */
function protecting({ bridge, chromium, activity }: Slot): FillHooks {
  const fill = {};
  let hasLeft = false;
  return {
    end: bridge.filled.expect(),
    opened: (page) =>
      chromium.watchNavigation({
        page,
        hasClients: () => activity.hasClients,
        hold: () => bridge.holds.hold([page]),
        left: () => (hasLeft = true),
        over: () => bridge.filled.remove(page, fill),
      }),
    hold(targets) {
      const [page] = targets;
      if (page === undefined || hasLeft) return undefined;
      bridge.filled.add(page, targets, fill);
      return bridge.holds.hold(targets);
    },
  };
}
