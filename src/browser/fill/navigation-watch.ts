import type { Cdp } from "../cdp/cdp.js";
import { isRecord } from "../../base/is-record.js";

export interface NavigationWatch {
  readonly page: string;
  /** Whether a client is connected, who may answer dialogs. */
  hasClients(): boolean;
  /** The page shows another document. Called once. */
  over(): void;
}

/**
 * Tells when a page shows another document than now; a page that closes is not told of. Throws where it
 * cannot.
 */
export async function watchNavigation(cdp: Cdp, { page, hasClients, over }: NavigationWatch): Promise<void> {
  const { sessionId: session } = await cdp.send("Target.attachToTarget", { targetId: page, flatten: true });
  const stops = [
    cdp.on(
      "Page.frameNavigated",
      ({ frame }) => isRecord(frame) && frame["parentId"] === undefined && stop(),
      session,
    ),
    // Chromium asks whoever has this domain, and the page waits for an answer.
    cdp.on("Page.javascriptDialogOpening", () => hasClients() || answerDialog(cdp, session), session),
  ];
  const stop = (): void => {
    for (const each of stops) each();
    over();
    cdp.send("Target.detachFromTarget", { sessionId: session }).catch(() => {});
  };
  await cdp.send("Page.enable", {}, { session });
}

function answerDialog(cdp: Cdp, session: string): void {
  cdp.send("Page.handleJavaScriptDialog", { accept: false }, { session }).catch(() => {});
}
