import type { Seal } from "../base/crypto/seal.js";
import type { LeaseId } from "../base/ids.js";
import { failed, type CommandResult } from "../gateway/relay/command-result.js";
import { fillOwner, type PageFillOutcome, pageFillParser } from "../spec/page-fill.js";
import { runAsVisitor } from "./exclusive.js";
import type { Slot } from "./slot.js";

/** Writes values into pages for the holders of browsers. */
export class PageFills {
  constructor(private readonly seal: Pick<Seal, "open">) {}

  /** `sealed`: a `PageFill` that was sealed for this lease. The reply has the JSON of a `PageFillOutcome`. */
  async fill(slot: Slot, lease: LeaseId, sealed: string): Promise<CommandResult> {
    const opened = this.seal.open(sealed, fillOwner(slot.id, lease));
    if (opened.kind !== "opened")
      return failed("The fill was sealed with another secret, or for another lease");
    const fill = pageFillParser.json(opened.text.reveal());
    const outcome = await runAsVisitor(slot, lease, async (signal) => {
      await slot.restarting;
      return await slot.chromium.fillPage(fill, {
        signal,
        hold: (targets) => slot.bridge.holds.hold(targets),
      });
    });
    const gone: PageFillOutcome = { kind: "refused", why: "browser_gone" };
    return { isDone: true, payload: JSON.stringify(outcome ?? gone) };
  }
}
