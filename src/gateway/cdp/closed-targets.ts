import { isText } from "../../base/is-text.js";
import type { Command } from "./command.js";
import type { TargetInfo } from "../../browser/cdp/target-event.js";
import { isClosedTarget, isExtensionTarget } from "../gates/internal-pages.js";
import type { CdpSession, CdpSessions } from "./sessions.js";

/**
 * The targets on which no client may have a session, as the browser tells of them, and those of extensions.
 */
export class ClosedTargets {
  readonly #closed = new Set<string>();
  readonly #ofExtensions = new Set<string>();

  /** Whether clients have to be taken off it. */
  note(info: TargetInfo): boolean {
    const isClosed = isClosedTarget(info);
    if (isClosed) this.#closed.add(info.targetId);
    else this.#closed.delete(info.targetId);
    if (isExtensionTarget(info)) this.#ofExtensions.add(info.targetId);
    else this.#ofExtensions.delete(info.targetId);
    return isClosed;
  }

  isOfExtension(target: string): boolean {
    return this.#ofExtensions.has(target);
  }

  has(target: unknown): boolean {
    return typeof target === "string" && this.#closed.has(target);
  }

  /**
   * Why a command does not pass: where its session is, or the one that it carries a message to, or the target
   * that it would be attached to.
   */
  whyRefused<Owner>(
    sessions: CdpSessions<Owner>,
    from: CdpSession<Owner>,
    { method, params }: Command,
  ): string | undefined {
    const isCarrier = method === "Target.sendMessageToTarget";
    const carried = isCarrier ? carriers(sessions, from, params) : [];
    // Chromium takes the message in the moment the session begins, before it is known here what that is
    // attached to.
    if (isCarrier && carried.length === 0) return "No session with given id";
    const targets = [
      from.target,
      ...carried.map(({ target }) => target),
      method.startsWith("Target.a") && params["targetId"],
    ];
    return targets.some((each) => this.has(each))
      ? "The browser's own pages are not open to clients"
      : undefined;
  }

  gone(target: string): void {
    this.#closed.delete(target);
    this.#ofExtensions.delete(target);
  }
}

/** The sessions that a message may go to: each is known, and its client's own. */
function carriers<Owner>(
  sessions: CdpSessions<Owner>,
  from: CdpSession<Owner>,
  { sessionId, targetId }: Command["params"],
): readonly CdpSession<Owner>[] {
  if (sessionId === undefined)
    return [...from.children].filter(({ target }) => target !== undefined && target === targetId);
  const to = isText(sessionId) ? sessions.find(sessionId) : undefined;
  return to?.owner === from.owner && (targetId === undefined || targetId === to.target) ? [to] : [];
}
