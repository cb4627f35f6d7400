import type { Millis } from "../base/clock.js";
import { refusal, type Refusal } from "../base/errors.js";
import { partitionOf, newRequestId } from "../base/ids.js";
import type { NodeReply, NodeRequest, RunningChange } from "../pool/ports/messages.js";
import type { LeasedBrowser } from "../pool/browser.js";
import type { Caller } from "../spec/caller.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { LoadedProfile } from "../pool/session-profile.js";
import type { Session } from "../pool/session.js";

interface ChangeRunningPorts {
  readonly poolStore: PoolStore;
  /** The browser's node ends Chromium and starts it again within. */
  readonly restartLimitMs: Millis;
  askNode(browser: LeasedBrowser, what: NodeRequest, limitMs?: Millis): Promise<NodeReply>;
}

/** What a PATCH asks for is in force: its first attempt was answered, and the answer lost. */
const isRepeat = ({ profile }: Session, wanted: LoadedProfile, { retryCount }: Caller): boolean =>
  retryCount > 0 && profile?.id === wanted.id && profile.save === wanted.save;

/** A profile goes only where none is loaded, of the launch or of an earlier PATCH (docs/api.md#sessions). */
export const refusedProfile = (
  session: Session,
  wanted: LoadedProfile | undefined,
  caller: Caller,
): Refusal | undefined =>
  wanted && session.profile && !isRepeat(session, wanted, caller) ? refusal("profile_loaded") : undefined;

/**
 * Changes the running browser: all of it, or nothing. The lease says before that the browser is touched, and
 * one that gets a profile is nobody else's from then on: whether a node that gives no answer has done it
 * cannot be known, and this process may end meanwhile.
 */
export async function changeRunning(
  ports: ChangeRunningPorts,
  browser: LeasedBrowser,
  change: RunningChange,
): Promise<Refusal | undefined> {
  const mark = { set: {}, clear: [], touched: true, altered: change.profile !== undefined };
  const { kind } = await ports.poolStore.touch(partitionOf(browser.id), {
    browser: browser.id,
    lease: browser.lease.id,
    change: mark,
    request: newRequestId(),
  });
  if (kind !== "touched") return refusal(kind === "superseded" ? "lease_superseded" : "browser_not_found");
  const answer = await ports.askNode(
    browser,
    { kind: "change", ...change },
    change.profile && ports.restartLimitMs,
  );
  switch (answer.kind) {
    case "done":
      return undefined;
    case "silent":
      return refusal("node_silent", { retryAfterSeconds: 1 });
    case "failed":
      return refused(answer, change);
  }
}

function refused(
  { code, text }: Extract<NodeReply, { kind: "failed" }>,
  { profile }: RunningChange,
): Refusal {
  if (profile)
    return refusal(code ?? "launch_failed", {
      message: text ?? "The browser could not be started from the profile",
    });
  return refusal(code ?? "not_supported", { message: text ?? "The browser could not take this viewport" });
}
