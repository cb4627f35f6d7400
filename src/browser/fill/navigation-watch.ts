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

/**
 * Chromium refuses while a navigation to an entry of the history is under way, reloading included (Chromium
 * 156, docs/chromium.md#cdp).
 */
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
  const documents = new Documents(page);
  const navigated = async (frame: FrameFields): Promise<void> => {
    left?.();
    // What comes before the history is clear may be the filled document: somebody has gone back to it.
    isBack = isClearing && documents.isBack(frame, isBack);
    documents.came(frame);
    if (isClearing) return;
    isClearing = true;
    const release = hold();
    const isClear = await clearHistory({ cdp, clock, session }, documents);
    isClearing = false;
    if (isClear && !isBack) {
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
    cdp.on("Page.frameStartedNavigating", (event) => documents.begins(event), session),
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

/** The documents of a page, as Chromium tells of them when it sets out for them and when they have come. */
class Documents {
  readonly #kinds = new Map<unknown, unknown>();
  /** The entry of the history that was set out for last, until it has come or was broken off. */
  #begunBack: unknown;
  #cameLast: unknown;
  #count = 0;

  constructor(private readonly page: string) {}

  begins({ frameId, loaderId, navigationType: kind }: FrameFields): void {
    if (frameId !== this.page) return;
    if (this.#kinds.size >= mostNavigations) this.#kinds.clear();
    this.#kinds.set(loaderId, kind);
    if (/^(?:historyDifferentDocument|restore)/.test(String(kind))) this.#begunBack = loaderId;
  }

  /** Whether a document may come out of the history; a reload shows what was there before. */
  isBack({ loaderId }: FrameFields, before: boolean): boolean {
    const kind = String(this.#kinds.get(loaderId));
    return kind.startsWith("reload") ? before : kind !== "differentDocument";
  }

  came({ loaderId }: FrameFields): void {
    this.#cameLast = loaderId;
    this.#count += 1;
    if (loaderId === this.#begunBack) this.#begunBack = undefined;
  }

  /** How many have come. */
  get count(): number {
    return this.#count;
  }

  /**
   * Whether the page shows the document that came last, once its history is clear. Chromium's renderer tells
   * of a document, and may do so after the browser process shows it; where an entry of the history was set
   * out for, the page is asked. That may also have been broken off, or be a page that Chromium had kept,
   * which comes under its earlier name.
   */
  async showsLast(cdp: Cdp, session: string): Promise<boolean> {
    if (this.#begunBack === undefined) return true;
    const { frameTree } = await cdp.send("Page.getFrameTree", {}, { session });
    const isLast = frameTree.frame.loaderId === this.#cameLast;
    if (isLast) this.#begunBack = undefined;
    return isLast;
  }
}
const mostNavigations = 100;

/**
 * Going back would show what was filled: Chromium restores the page, or what stood in its fields. A page may
 * keep its history for as long as it likes, by a reload that never ends. Ends when the history is clear and
 * the document that is shown was told of. False where the page has gone.
 */
async function clearHistory(
  { cdp, clock, session }: { readonly cdp: Cdp; readonly clock: Clock; readonly session: string },
  documents: Documents,
): Promise<boolean> {
  for (let tries = 1; ; tries += 1) {
    const { count } = documents;
    const outcome = await cdp
      .send("Page.resetNavigationHistory", {}, { session })
      .then(() => documents.showsLast(cdp, session))
      .then(
        // One that has come meanwhile has brought the document before it into the history.
        (isLast) => (isLast && documents.count === count ? "clear" : "early"),
        (error: unknown) => (isGone(error) ? "gone" : "refused"),
      );
    if (outcome === "clear" || outcome === "gone") return outcome === "clear";
    await pause(clock, tries < clearing.soonTries ? clearing.soonMs : clearing.laterMs);
  }
}

const isGone = (error: unknown): boolean => error instanceof PipeClosed || hasNotBegun(error);

function answerDialog(cdp: Cdp, session: string): void {
  cdp.send("Page.handleJavaScriptDialog", { accept: false }, { session }).catch(() => {});
}
