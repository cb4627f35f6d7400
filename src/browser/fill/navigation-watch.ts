import { type Clock, pause } from "../../base/clock.js";
import { isRecord } from "../../base/is-record.js";
import { type Cdp, PipeClosed } from "../cdp/cdp.js";
import { Dialogs } from "../cdp/dialogs.js";
import { hasNotBegun } from "./calls.js";

export interface NavigationWatch {
  readonly page: string;
  /** Whether a client is connected, who may answer dialogs. */
  hasClients(): boolean;
  /** Has what clients say to the page wait, until the returned function is called. */
  hold(): () => void;
  /** Another document has come. Called before its history is clear, and again with each that comes later. */
  left?(): void;
  /** The page shows another document. Called once. */
  over(): void;
}

/** Chromium refuses while a navigation to an entry of the history is under way, reloading included. */
const clearing = { soonMs: 20, laterMs: 250, soonTries: 80 } as const;

/**
 * Tells when a page shows another document than now; a page that closes is not told of. Throws where it
 * cannot.
 */
export async function watchNavigation(
  { cdp, clock }: { readonly cdp: Cdp; readonly clock: Clock },
  { page, hasClients, hold, left, over }: NavigationWatch,
): Promise<void> {
  const { sessionId: session } = await cdp.send("Target.attachToTarget", { targetId: page, flatten: true });
  const dialogs = new Dialogs({ clock, hasClients, answer: () => answerDialog(cdp, session) });
  const end = (): void => {
    dialogs.over();
    for (const stop of stops) stop();
    cdp.leave(session).catch(() => {});
  };
  let isClearing = false;
  let isBack = false;
  const kinds = new NavigationKinds();
  const navigated = async (frame: FrameFields): Promise<void> => {
    left?.();
    // What comes before the history is clear may be the filled document: somebody has gone back to it.
    isBack = (isClearing || kinds.isGoingBack) && kinds.isBack(frame, isBack);
    kinds.came(frame);
    if (isClearing) return;
    isClearing = true;
    const release = hold();
    const isClear = await clearHistory(cdp, clock, session);
    isClearing = false;
    // Chromium may have gone back already, and tell of the document a moment later than of a clear history.
    if (isClear && !isBack && !kinds.isGoingBack) {
      over();
      end();
    }
    release();
  };
  const stops = [
    cdp.on(
      "Page.frameNavigated",
      ({ frame }) => isRecord(frame) && frame["parentId"] === undefined && void navigated(frame),
      session,
    ),
    cdp.on("Page.frameStartedNavigating", (event) => kinds.note(page, event), session),
    // Chromium asks whoever has this domain, and the page waits for an answer.
    cdp.on("Page.javascriptDialogOpening", () => dialogs.opened(), session),
    cdp.on("Page.javascriptDialogClosed", () => dialogs.over(), session),
  ];
  try {
    await cdp.send("Page.enable", {}, { session });
  } catch (error) {
    end();
    throw error;
  }
}

type FrameFields = Readonly<Record<string, unknown>>;

/** How the documents of a page have come, as Chromium tells when it sets out for them. */
class NavigationKinds {
  readonly #begun = new Map<unknown, { readonly kind: string; readonly number: number }>();
  #count = 0;
  /** The last that set out for an entry of the history, until its document or a later one has come. */
  #goingBack: number | undefined;

  /** Stays true where such a navigation was broken off, until another document comes. */
  get isGoingBack(): boolean {
    return this.#goingBack !== undefined;
  }

  note(page: string, { frameId, loaderId, navigationType: kind }: FrameFields): void {
    if (frameId !== page) return;
    if (this.#begun.size >= mostNavigations) this.#begun.clear();
    this.#count += 1;
    this.#begun.set(loaderId, { kind: String(kind), number: this.#count });
    if (/^(?:historyDifferentDocument|restore)/.test(String(kind))) this.#goingBack = this.#count;
  }

  /** Whether a document may come out of the history; a reload shows what was there before. */
  isBack({ loaderId }: FrameFields, before: boolean): boolean {
    const kind = this.#begun.get(loaderId)?.kind;
    return kind?.startsWith("reload") ? before : kind !== "differentDocument";
  }

  /** One that Chromium has kept as it was comes under the name of its first navigation. */
  came({ loaderId }: FrameFields): void {
    const number = this.#begun.get(loaderId)?.number ?? this.#count;
    if (this.#goingBack !== undefined && number >= this.#goingBack) this.#goingBack = undefined;
  }
}
const mostNavigations = 100;

/**
 * Going back would show what was filled: Chromium restores the page, or what stood in its fields. A page may
 * keep its history for as long as it likes, by a reload that never ends. False where the page has gone.
 */
async function clearHistory(cdp: Cdp, clock: Clock, session: string): Promise<boolean> {
  for (let tries = 1; ; tries += 1) {
    const outcome = await cdp.send("Page.resetNavigationHistory", {}, { session }).then(
      () => "clear" as const,
      (error: unknown) => (isGone(error) ? "gone" : "refused"),
    );
    if (outcome !== "refused") return outcome === "clear";
    await pause(clock, tries < clearing.soonTries ? clearing.soonMs : clearing.laterMs);
  }
}

const isGone = (error: unknown): boolean => error instanceof PipeClosed || hasNotBegun(error);

function answerDialog(cdp: Cdp, session: string): void {
  cdp.send("Page.handleJavaScriptDialog", { accept: false }, { session }).catch(() => {});
}
