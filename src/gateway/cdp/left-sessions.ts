import type { LateDetaches } from "../../browser/cdp/late-detaches.js";
import type { Command } from "./command.js";
import type { ControlSession } from "./control-session.js";
import type { BridgeReply } from "./message-edits.js";
import type { CdpSession } from "./sessions.js";

interface LeftParts {
  readonly late: LateDetaches;
  readonly control: Pick<ControlSession, "ask" | "detach">;
  isPage(target: string): boolean;
}

/** Whether a context is to go with the session that creates it. */
export const bindsContext = ({ method, params }: Command): boolean =>
  method === "Target.createBrowserContext" && params["disposeOnDetach"] === true;

/**
 * Ends the sessions that clients leave: at once, or, while a passkey is armed and they are on pages, as soon
 * as that is over. A client notices no difference.
 */
export class LeftSessions<Owner> {
  /** The contexts that go with a session. */
  readonly #contexts = new WeakMap<CdpSession<Owner>, string[]>();
  /** Sessions below which others hang on. */
  readonly #above = new WeakSet<CdpSession<Owner>>();

  constructor(private readonly parts: LeftParts) {}

  created(session: CdpSession<Owner>, { result }: BridgeReply): void {
    const context = result?.["browserContextId"];
    if (typeof context === "string")
      this.#contexts.set(session, [...(this.#contexts.get(session) ?? []), context]);
  }

  /** The session on a page that a command detaches, where its end is to be put off. */
  find(from: CdpSession<Owner>, { method, params }: Command): CdpSession<Owner> | undefined {
    if (!this.parts.late.isHolding || method !== "Target.detachFromTarget") return undefined;
    const left = [...from.children].find(({ id }) => id === params.sessionId);
    return left && this.#hasPage(left) ? left : undefined;
  }

  /** `gone`: the session and those below it. Resolves when it has ended, or need not yet. */
  async end(left: CdpSession<Owner>, gone: ReadonlySet<CdpSession<Owner>>): Promise<void> {
    const { control, late } = this.parts;
    const detach = (): Promise<void> => control.detach(left.id, left.parent?.id);
    const sessions = [...gone].map((session) => ({ id: session.id, hasPages: this.#isAbovePages(session) }));
    const hasPage = this.#hasPage(left) || [...gone].some((session) => this.#above.has(session));
    const ask = (method: string, params: object, id: string): Promise<unknown> =>
      control.ask(method, params, id);
    if (!hasPage || !late.takes({ sessions, ask, detach })) return await detach();
    for (let above = left.parent; above; above = above.parent) this.#above.add(above);
    for (const session of gone)
      for (const browserContextId of this.#contexts.get(session) ?? [])
        ask("Target.disposeBrowserContext", { browserContextId }, session.id).catch(() => {});
  }

  #isAbovePages(session: CdpSession<Owner>): boolean {
    const isOfBrowser = session.isRoot && session.target === undefined;
    return isOfBrowser || [...session.children].some((child) => this.#hasPage(child));
  }

  #hasPage({ target, children }: CdpSession<Owner>): boolean {
    if (target !== undefined && this.parts.isPage(target)) return true;
    return [...children].some((child) => this.#hasPage(child));
  }
}
