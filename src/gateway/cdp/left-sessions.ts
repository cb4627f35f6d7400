import type { LateDetaches } from "../../browser/cdp/late-detaches.js";
import type { Command } from "./command.js";
import type { ControlSession } from "./control-session.js";
import type { Frame } from "../../browser/cdp/frame.js";
import { type BridgeReply, findAttached } from "./message-edits.js";
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
  /** Sessions that have asked to be attached to what comes, and may not have heard of it yet. */
  readonly #attaching = new WeakSet<CdpSession<Owner>>();

  constructor(private readonly parts: LeftParts) {}

  /** What a session was used for: only that is switched off when it is left. */
  sent({ domains }: CdpSession<Owner>, { method }: Command): void {
    const [domain = "", name] = method.split(".", 2);
    domains.add(domain);
    if (name === carrier) domains.add(carrier);
  }

  created(session: CdpSession<Owner>, { result }: BridgeReply): void {
    const context = result?.["browserContextId"];
    if (typeof context === "string")
      this.#contexts.set(session, [...(this.#contexts.get(session) ?? []), context]);
  }

  /** Why a command may not end sessions on pages that Chromium would end at once. */
  whyRefused(from: CdpSession<Owner>, { method, params }: Command): string | undefined {
    if (!this.parts.late.isHolding) return undefined;
    if (method === detaching && namedBy(from, params).length === 0) return "No session with given id";
    if (!autoAttaching.has(method)) return undefined;
    const isEnding = params["autoAttach"] === false || method !== "Target.setAutoAttach";
    if (isEnding && (this.#attaching.has(from) || this.#isAbove(from))) return `${method} ${whyAttached}`;
    this.#attaching.add(from);
    return undefined;
  }

  /** The session on a page that a command detaches, where its end is to be put off. */
  find(from: CdpSession<Owner>, { method, params }: Command): CdpSession<Owner> | undefined {
    if (!this.parts.late.isHolding || method !== detaching) return undefined;
    const [left, ...more] = namedBy(from, params);
    // Where a target is named to which there are several, Chromium refuses.
    return left && more.length === 0 && this.#hasPage(left) ? left : undefined;
  }

  /** What a session attaches by itself that was left at the same moment. */
  attached(from: string, frame: Frame): void {
    const attached = this.parts.late.has(from) ? findAttached(frame) : undefined;
    if (attached) this.parts.late.attached(attached.session);
  }

  /** `gone`: the session and those below it. Resolves when it has ended, or need not yet. */
  async end(left: CdpSession<Owner>, gone: ReadonlySet<CdpSession<Owner>>): Promise<void> {
    const { control, late } = this.parts;
    const detach = (): Promise<void> => control.detach(left.id, left.parent?.id);
    const sessions = [...gone].map((session) => ({
      id: session.id,
      hasPages: this.#isAbovePages(session),
      domains: domainsOf(session),
      ...(session.parent?.domains.has(carrier) && { by: session.parent.id }),
    }));
    const hasPage = this.#hasPage(left) || [...gone].some((session) => this.#above.has(session));
    if (!hasPage || !late.takes({ sessions, detach })) return await detach();
    for (let above = left.parent; above; above = above.parent) this.#above.add(above);
    for (const session of gone)
      for (const browserContextId of this.#contexts.get(session) ?? [])
        control.ask("Target.disposeBrowserContext", { browserContextId }, session.id).catch(() => {});
  }

  #isAbovePages(session: CdpSession<Owner>): boolean {
    const isOfBrowser = session.isRoot && session.target === undefined;
    return isOfBrowser || this.#isAbove(session);
  }

  #isAbove({ children }: Pick<CdpSession<Owner>, "children">): boolean {
    return [...children].some((child) => this.#hasPage(child));
  }

  #hasPage({ target, children }: CdpSession<Owner>): boolean {
    if (target !== undefined && this.parts.isPage(target)) return true;
    return this.#isAbove({ children });
  }
}

const detaching = "Target.detachFromTarget";
const autoAttaching: ReadonlySet<string> = new Set(["Target.setAutoAttach", "Target.autoAttachRelated"]);
const carrier = "sendMessageToTarget";
/** Chromium 156 ends what was attached unasked by either. */
const whyAttached =
  "is refused while a passkey of a vault is armed in this browser, where pages are attached: they would lose it. " +
  "Detach from their sessions one by one";

/** What was sent inside messages is not known. */
function domainsOf<Owner>({ domains, parent }: CdpSession<Owner>): ReadonlySet<string> | undefined {
  for (let above = parent; above; above = above.parent) if (above.domains.has(carrier)) return undefined;
  return domains;
}

/** Those of a session's own that a command names. */
function namedBy<Owner>(
  { children }: CdpSession<Owner>,
  { sessionId, targetId }: Command["params"],
): readonly CdpSession<Owner>[] {
  const isNamed = ({ id, target }: CdpSession<Owner>): boolean =>
    sessionId === undefined ? target !== undefined && target === targetId : id === sessionId;
  return [...children].filter(isNamed);
}
