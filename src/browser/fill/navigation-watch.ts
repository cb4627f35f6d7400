import { type Clock, type Millis, pause } from "../../base/clock.js";
import { isRecord } from "../../base/is-record.js";
import type { Cdp } from "../cdp/cdp.js";

export interface NavigationWatch {
  readonly page: string;
  /** Whether a client is connected, who may answer dialogs. */
  hasClients(): boolean;
  /** Has what clients say to the page wait, until the returned function is called. */
  hold(): () => void;
  /** The page shows another document. Called once. */
  over(): void;
}

/** Chromium refuses in the moment of a navigation, and while the next one is under way. */
const clearing = { tries: 80, everyMs: 20 satisfies Millis } as const;

/**
 * Tells when a page shows another document than now; a page that closes is not told of. Throws where it
 * cannot.
 */
export async function watchNavigation(
  { cdp, clock }: { readonly cdp: Cdp; readonly clock: Clock },
  { page, hasClients, hold, over }: NavigationWatch,
): Promise<void> {
  const { sessionId: session } = await cdp.send("Target.attachToTarget", { targetId: page, flatten: true });
  const stops = [
    cdp.on(
      "Page.frameNavigated",
      ({ frame }) => isRecord(frame) && frame["parentId"] === undefined && void stop(),
      session,
    ),
    // Chromium asks whoever has this domain, and the page waits for an answer.
    cdp.on("Page.javascriptDialogOpening", () => hasClients() || answerDialog(cdp, session), session),
  ];
  const stop = async (): Promise<void> => {
    for (const each of stops) each();
    const release = hold();
    await clearHistory(cdp, clock, session);
    over();
    release();
    cdp.send("Target.detachFromTarget", { sessionId: session }).catch(() => {});
  };
  await cdp.send("Page.enable", {}, { session });
}

/** Going back would show what was filled: Chromium restores the page, or what stood in its fields. */
async function clearHistory(cdp: Cdp, clock: Clock, session: string): Promise<void> {
  for (let left = clearing.tries; left > 0; left -= 1) {
    const isClear = await cdp.send("Page.resetNavigationHistory", {}, { session }).then(
      () => true,
      () => false,
    );
    if (isClear) return;
    await pause(clock, clearing.everyMs);
  }
}

function answerDialog(cdp: Cdp, session: string): void {
  cdp.send("Page.handleJavaScriptDialog", { accept: false }, { session }).catch(() => {});
}
