import { isRecord } from "../../base/is-record.js";
import { CdpRefused, ignoreRefusal } from "../cdp/cdp.js";
import { targetInfoOf } from "../cdp/target-event.js";
import { type FillCalls, FillRefused, FillStopped, returned } from "./calls.js";
import { findTargets, type SearchOutcome, inPageCalls } from "./in-page.js";
import { planOf } from "./selector-steps.js";

/** A frame of the page in which the targets have been looked for. */
export interface SearchedFrame {
  readonly session: string;
  /** What `findTargets` has returned there. */
  readonly object: string;
  readonly origin: string;
  /** What each selector has found, in their order. */
  readonly found: readonly SearchOutcome[];
}

interface PageFrame {
  readonly id: string;
  /** One document of the frame: another has another. */
  readonly loader: string;
  /** With query and fragment. */
  readonly url: string;
  readonly session: string;
}

/** The part of `Page.getFrameTree` that is read. */
interface FrameTree {
  readonly frame: {
    readonly id: string;
    readonly loaderId: string;
    readonly url: string;
    readonly urlFragment?: string | undefined;
  };
  readonly childFrames?: readonly FrameTree[] | undefined;
}

const mostFrames = 256;
const detachLimitMs = 1000;
/** Frames of other sites are targets of their own. */
const framesOnly = [{ type: "iframe" }, { exclude: true }];

/** All frames of one page, each reached by a session of our own. */
export class PageFrames {
  readonly #sessions: string[] = [];
  readonly #targets: string[] = [];
  readonly #listening: (() => void)[] = [];

  constructor(private readonly calls: FillCalls) {}

  /** The page's target and those of its frames. */
  get targets(): readonly string[] {
    return this.#targets;
  }

  async open(page: string): Promise<void> {
    const { sessionId } = await this.calls.send("Target.attachToTarget", { targetId: page, flatten: true });
    await this.#follow(page, sessionId);
  }

  /** Ends the sessions; never throws. */
  async close(): Promise<void> {
    for (const stop of this.#listening) stop();
    const [page] = this.#sessions;
    if (page === undefined) return;
    // Those of the frames go with it.
    await this.calls.cdp.leave(page, { limitMs: detachLimitMs }).catch(() => {});
  }

  async #follow(target: string, session: string): Promise<void> {
    this.#targets.push(target);
    this.#sessions.push(session);
    const below: { target: string; session: string }[] = [];
    this.#listening.push(
      this.calls.cdp.on(
        "Target.attachedToTarget",
        ({ targetInfo, sessionId }) => {
          const info = targetInfoOf(targetInfo);
          if (info && typeof sessionId === "string")
            below.push({ target: info.targetId, session: sessionId });
        },
        session,
      ),
    );
    const params = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true, filter: framesOnly };
    // The frames that are there are told of before this is answered.
    await this.calls.send("Target.setAutoAttach", params, session);
    for (const frame of below) await this.#follow(frame.target, frame.session);
  }

  /**
   * Looks for targets in every frame; the first is the page's own, whose document has to have the address,
   * where one is named. A frame that has gone meanwhile is left out. Throws where another document has come
   * into one that was found.
   */
  async search(selectors: readonly string[], url: string | undefined): Promise<readonly SearchedFrame[]> {
    const frames = await this.#list();
    checkAddress(frames, url);
    if (frames.length > mostFrames) throw new FillStopped("execution_failed");
    const searched = await Promise.all(frames.map((frame) => this.#search(frame, selectors)));
    // A session goes on with the next document of its frame, whose process may count its contexts alike: only
    // where the documents are those of before was it these that have answered.
    const after = await this.#list();
    const loaders = new Set(after.map(({ loader }) => loader));
    if (frames.some(({ loader }, at) => searched[at] !== undefined && !loaders.has(loader)))
      throw new FillStopped("target_changed");
    // A document may have changed its address while it was searched.
    checkAddress(after, url);
    if (searched[0] === undefined) throw new FillStopped("target_changed");
    return searched.filter((frame) => frame !== undefined);
  }

  async #list(): Promise<readonly PageFrame[]> {
    const trees = await Promise.all(this.#sessions.map((session) => this.#listOf(session)));
    return trees.flat();
  }

  async #listOf(session: string): Promise<readonly PageFrame[]> {
    try {
      const { frameTree } = await this.calls.send("Page.getFrameTree", {}, session);
      return flat(frameTree).map(({ frame }) => ({
        id: frame.id,
        loader: frame.loaderId,
        url: `${frame.url}${frame.urlFragment ?? ""}`,
        session,
      }));
    } catch (error) {
      // The page has to be there; a frame in a process of its own may be gone.
      if (session !== this.#sessions[0]) ignoreRefusal(error);
      else throw error instanceof CdpRefused ? new FillStopped("target_changed") : error;
      return [];
    }
  }

  async #search(
    { id, session }: PageFrame,
    selectors: readonly string[],
  ): Promise<SearchedFrame | undefined> {
    try {
      const { executionContextId } = await this.calls.send(
        "Page.createIsolatedWorld",
        { frameId: id },
        session,
      );
      const answer = await this.calls.send(
        "Runtime.callFunctionOn",
        {
          executionContextId,
          functionDeclaration: findTargets,
          arguments: [{ value: selectors.map(planOf) }],
          silent: true,
        },
        session,
      );
      const { objectId: object } = returned(answer);
      if (object === undefined) throw new FillStopped("execution_failed");
      const summary = await this.calls.call({ object, session }, inPageCalls.summary);
      return { session, object, ...summaryOf(summary) };
    } catch (error) {
      ignoreRefusal(error);
      return undefined;
    }
  }
}

/**
 * The page was chosen among the browser's targets, which are listed by the address that they are on their way
 * to; and it may have gone on since.
 */
function checkAddress([page]: readonly PageFrame[], url: string | undefined): void {
  if (url !== undefined && page?.url !== url) throw new FillRefused("page_not_found");
}

const flat = (tree: FrameTree): readonly FrameTree[] => [tree, ...(tree.childFrames ?? []).flatMap(flat)];

/** Our own function has made it, in a world that no page can change. */
function summaryOf(summary: unknown): Pick<SearchedFrame, "found" | "origin"> {
  if (!isRecord(summary) || !Array.isArray(summary["found"])) throw new FillStopped("execution_failed");
  return { found: summary["found"] as readonly SearchOutcome[], origin: String(summary["origin"]) };
}
