import type { Millis } from "../base/clock.js";
import { type Refusal, refusal } from "../base/errors.js";
import { homeOf, newRequestId } from "../base/ids.js";
import type { NodeAnswer } from "./ask-node.js";
import type { Browser } from "./browser.js";
import type { Caller } from "./operations.js";
import type { Homes, NodeQuestion, Touch } from "./ports.js";
import type { LoadedProfile } from "./profiles.js";
import type { Session } from "./session.js";

interface Ports {
  readonly homes: Homes;
  /** The browser's node ends Chromium and starts it again within. */
  readonly restartLimitMs: Millis;
  askNode(browser: Browser, what: NodeQuestion, limitMs?: Millis): Promise<NodeAnswer>;
}

/** What a PATCH asks for is in force: its first attempt was answered, and the answer lost. */
const isRepeat = ({ profile }: Session, wanted: LoadedProfile, { retryCount }: Caller): boolean =>
  retryCount > 0 && profile?.id === wanted.id && profile.save === wanted.save;

/** A profile goes only where none is loaded, of the launch or of an earlier PATCH (wire-facts.md 2.2). */
export const refusedProfile = (session: Session, wanted: LoadedProfile | undefined, caller: Caller): Refusal | undefined =>
  wanted && session.profile && !isRepeat(session, wanted, caller) ? refusal("profile_loaded") : undefined;

/**
 * Restarts the browser from the profile's state, then notes it in the lease. From before the question on the browser is nobody
 * else's: whether a node that gives no answer has done it cannot be known.
 */
export async function attachProfile(ports: Ports, session: Session, wanted: LoadedProfile | undefined): Promise<Refusal | undefined> {
  if (!wanted || session.profile) return undefined;
  const { browser } = session;
  const refused = await note(ports, browser, { set: {}, clear: [], touched: true, altered: true });
  if (refused) return refused;
  const answer = await ports.askNode(browser, { kind: "profile", ...wanted }, ports.restartLimitMs);
  switch (answer.kind) {
    case "done": return await note(ports, browser, { set: { profile: JSON.stringify(wanted) }, clear: [], touched: true });
    case "silent": return refusal("node_silent", { retryAfterSeconds: 1 });
    case "failed": return refusal(answer.code ?? "launch_failed", { message: answer.text ?? "The browser could not be started from the profile" });
  }
}

async function note({ homes }: Ports, { id, lease }: Browser, change: Touch): Promise<Refusal | undefined> {
  if (!lease) return refusal("browser_not_found");
  const { kind } = await homes.touch(homeOf(id), { browser: id, lease: lease.id, change, request: newRequestId() });
  if (kind === "touched") return undefined;
  return refusal(kind === "superseded" ? "lease_superseded" : "browser_not_found");
}
