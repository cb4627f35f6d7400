import type { TargetInfo } from "../../browser/cdp/target-event.js";
import { readsAllPages, readsPage, tellsOfPage } from "../gates/protected-pages.js";
import { codes, type Command, errorReply, resultReply } from "./command.js";
import type { CdpSession, CdpSessions } from "./sessions.js";

const carrier = "Target.sendMessageToTarget";
const flag = "(protect_filled)";
const filledHere = "a vault's value was filled in here, or in a page that this one reaches";
const explained = `is refused until the page's next navigation: ${filledHere} ${flag}`;
/** An extension's scripts run others in every page, by `chrome.scripting`, and take pictures of it. */
const ofExtension = `is refused to an extension's scripts while a page has a value of a vault ${flag}`;

/** Playwright says of every other error of these that the page has navigated (playwright-core 1.65). */
const scripts: ReadonlySet<string> = new Set(["Runtime.evaluate", "Runtime.callFunctionOn"]);

/** The answer to what is refused. A script is answered as if it had thrown, so that its author reads why. */
export function refusalOf(command: Command, why: string): string {
  // A mapper of BiDi reads nothing but an error, and asks for another serialization by its params.
  const isOfMapper = command.params["serializationOptions"] !== undefined;
  if (!scripts.has(command.method) || isOfMapper || !why.endsWith(flag))
    return errorReply(command, codes.refused, why);
  const exception = { type: "object", subtype: "error", className: "Error", description: `Error: ${why}` };
  const at = { exceptionId: 1, text: "Uncaught", lineNumber: 0, columnNumber: 0 };
  return resultReply(command, { result: { type: "undefined" }, exceptionDetails: { ...at, exception } });
}

/** Which pages reach each other by scripts: one has opened the other, and either has a hold on it. */
class OpenerGroups {
  /** The page that has opened each; undefined: none, or one that it has no hold on. */
  readonly #openers = new Map<string, string | undefined>();

  created({ targetId, type, openerId, canAccessOpener }: TargetInfo): void {
    if (type === "page") this.#openers.set(targetId, canAccessOpener === false ? undefined : openerId);
  }

  /** What it has opened stays together with what has opened it: they find each other by their names. */
  gone(page: string): void {
    const opener = this.#openers.get(page);
    this.#openers.delete(page);
    if (opener === undefined) return;
    for (const [target, by] of this.#openers) if (by === page) this.#openers.set(target, opener);
  }

  /** Whether it is a page, and no frame or worker. */
  has(target: string): boolean {
    return this.#openers.has(target);
  }

  /** Whether a page is one of those, or reaches one, by way of any others. */
  reaches(page: string, isWanted: (page: string) => boolean): boolean {
    const group = new Set([page]);
    // What is added meanwhile is looked at, too.
    for (const at of group) {
      if (isWanted(at)) return true;
      for (const other of this.#besides(at)) group.add(other);
    }
    return false;
  }

  /** What has opened a page, and what it has opened. */
  #besides(page: string): readonly string[] {
    const opener = this.#openers.get(page);
    const opened = [...this.#openers].filter(([, by]) => by === page).map(([target]) => target);
    return opener === undefined ? opened : [opener, ...opened];
  }
}

interface ProtectedParts {
  /** Whether it is a page or a worker of an extension. */
  isOfExtension(target: string): boolean;
  /** All sessions that clients have. */
  sessions(): Iterable<CdpSession<unknown>>;
}

/** Pages that a vault has filled, where a lease has those protected (docs/vault.md#protect_filled). */
export class ProtectedTargets {
  /** Whether a passkey of a vault is in the browser (docs/vault.md#passkeys). */
  isArmed = false;
  /** The page of each target: its frames in processes of their own have targets, too. */
  readonly #pages = new Map<string, string>();

  /** The fills on account of which each page is. */
  readonly #fills = new Map<string, Set<object>>();

  readonly #groups = new OpenerGroups();
  /** Targets of frames that came while a page was protected or about to be, and may be that page's. */
  readonly #lateFrames = new Set<string>();
  /** Workers that are of no page alone: they answer requests of pages, and pages ask them. */
  readonly #workers = new Set<string>();
  /** How many pages are about to be filled. */
  #expected = 0;

  constructor(private readonly parts: ProtectedParts) {}

  /** Whether any page is protected. */
  get hasPages(): boolean {
    return this.#pages.size > 0;
  }

  /** A page is about to be filled, until what is returned is called: frames that come may be its own. */
  expect(): () => void {
    this.#expected += 1;
    return () => {
      this.#expected -= 1;
      this.#forgetFrames();
    };
  }

  add(page: string, targets: readonly string[], fill: object): void {
    for (const target of targets) this.#pages.set(target, page);
    this.#fills.set(page, (this.#fills.get(page) ?? new Set()).add(fill));
    this.#keepAnswers();
  }

  /** What was asked before may be answered with what is written now. */
  #keepAnswers(): void {
    for (const session of this.parts.sessions()) {
      if (session.calls.size === 0 || !this.#isProtected(session)) continue;
      const reading = [...session.calls].filter(([, method]) => readsPage({ method, params: {} }));
      for (const [id] of reading) session.kept.add(id);
    }
  }

  #forgetFrames(): void {
    if (this.#pages.size === 0 && this.#expected === 0) this.#lateFrames.clear();
  }

  whyKept(method: string): string {
    return `The answer to ${method} ${explained}`;
  }

  /** The page shows another document than that fill's, which another may have filled by now, or is gone. */
  remove(page: string, fill?: object): void {
    const fills = this.#fills.get(page);
    if (fill) fills?.delete(fill);
    if (fill && fills && fills.size > 0) return;
    this.#fills.delete(page);
    for (const [target, of] of this.#pages) if (of === page) this.#pages.delete(target);
    this.#forgetFrames();
  }

  /** Whether a target is a page, and no frame or worker. */
  isPage(target: string): boolean {
    return this.#groups.has(target);
  }

  /** The browser has told of a target, whoever is attached to it. */
  created(info: TargetInfo): void {
    this.#groups.created(info);
    const { type, targetId } = info;
    if (sharedWorkers.has(type)) this.#workers.add(targetId);
    if (type === "iframe" && this.#pages.size + this.#expected > 0) this.#lateFrames.add(targetId);
  }

  gone(target: string): void {
    this.#groups.gone(target);
    this.#lateFrames.delete(target);
    this.#workers.delete(target);
    this.remove(target);
  }

  /** Why a client may not say it. */
  whyRefused<Owner>(
    sessions: CdpSessions<Owner>,
    from: CdpSession<Owner>,
    command: Command,
  ): string | undefined {
    const { method, params } = command;
    if (this.isArmed && (method === carrier || method.startsWith("WebAuthn.")))
      return `${method} is refused while a passkey of a vault is armed in this browser`;
    if (this.#pages.size === 0) return undefined;
    if (method === carrier)
      return this.#isProtected(from) || this.#carries(sessions, from, params)
        ? `${method} ${explained}`
        : undefined;
    const page = this.#pageOf(from);
    if (this.#actsForExtension(from) && readsPage(command)) return `${method} ${ofExtension}`;
    const isRefused =
      readsAllPages(method) ||
      (page === undefined
        ? isOfRequests(command) && !this.#isOfOtherPage(from)
        : readsPage(command) || isOfFrame(page, from, command));
    return isRefused ? `${method} ${explained}` : undefined;
  }

  /** Whether an event is kept from a client. */
  hides<Owner>(at: CdpSession<Owner>, event: string): boolean {
    if (this.#pages.size === 0) return false;
    // What a message within says is not read: while one page is protected, its client hears none.
    if (event === "Target.receivedMessageFromTarget")
      return [...at.children].some((child) => this.#isProtected(child));
    return tellsOfPage(event) && this.#isProtected(at);
  }

  /** What a message says is not read: none goes to such a page. */
  #carries<Owner>(
    sessions: CdpSessions<Owner>,
    from: CdpSession<Owner>,
    { sessionId, targetId }: Command["params"],
  ): boolean {
    const to = typeof sessionId === "string" ? sessions.find(sessionId) : undefined;
    const named = [...from.children].filter(({ target }) => target === targetId);
    return [to, ...named].some((session) => session !== undefined && this.#isProtected(session));
  }

  #isProtected<Owner>(session: CdpSession<Owner>): boolean {
    return this.#pageOf(session) !== undefined || this.#actsForExtension(session);
  }

  #actsForExtension<Owner>(session: CdpSession<Owner>): boolean {
    return targetsOf(session).some((target) => this.parts.isOfExtension(target));
  }

  /**
   * The page that may not be read at a session: one that was filled, one that reaches such a page, or one
   * that is not known, of a frame that came later or of a worker that answers any.
   */
  #pageOf<Owner>(session: CdpSession<Owner>): string | undefined {
    let isLate = false;
    for (const target of targetsOf(session)) {
      const filled = this.#pages.get(target);
      if (filled !== undefined) return filled;
      if (this.#groups.has(target))
        return this.#groups.reaches(target, (page) => this.#fills.has(page)) ? target : undefined;
      if (this.#workers.has(target)) return unknownPage;
      isLate ||= this.#lateFrames.has(target);
    }
    return isLate ? unknownPage : undefined;
  }

  /** Sessions on the whole browser and on workers answer requests of any page. */
  #isOfOtherPage<Owner>(session: CdpSession<Owner>): boolean {
    return targetsOf(session).some((target) => this.#groups.has(target));
  }
}

const unknownPage = "";
const sharedWorkers: ReadonlySet<string> = new Set(["service_worker", "shared_worker"]);

/** Whether a command answers requests of pages, or shows what these are answered. */
const isOfRequests = (command: Command): boolean => command.method.startsWith("Fetch.") && readsPage(command);

/** The target of a session, and those of the sessions by which it was attached. */
function targetsOf<Owner>(session: CdpSession<Owner>): readonly string[] {
  const targets: string[] = [];
  for (let at: CdpSession<Owner> | undefined = session; at; at = at.parent)
    if (at.target !== undefined) targets.push(at.target);
  return targets;
}

/**
 * Whether it has a frame of the page show another document: that could be one of the page's own origin, in
 * which scripts run that read the page. A page's frame has the id of its target.
 */
const isOfFrame = <Owner>(page: string, from: CdpSession<Owner>, { method, params }: Command): boolean =>
  method === "Page.navigate" && (params["frameId"] ?? from.target) !== page;
