import { isText } from "../base/is-text.js";
import { tellCommand, tellWritten } from "../telemetry/commands/tell.js";
import type { Command } from "./cdp/command.js";
import type { ClientEnd, ClientIdentity, LocalBrowser } from "./ports.js";

/**
 * Tells whoever listens what one client does. While nobody does, each message costs a look at whether
 * somebody does.
 */
export class ObservedClient {
  #isOpen = false;
  /** Sessions that have told Chromium where downloads go, which ends with them; "" is the root. */
  readonly #choosers = new Set<string>();

  constructor(
    private readonly browser: Pick<LocalBrowser, "clientObserver" | "chromium">,
    private readonly identity: ClientIdentity,
  ) {}

  get isObserved(): boolean {
    return this.browser.clientObserver !== undefined;
  }

  opened(): void {
    this.#isOpen = true;
    this.browser.clientObserver?.opened(this.identity);
  }

  message(): void {
    this.browser.clientObserver?.message(this.identity);
  }

  command(command: Command): void {
    if (choosesDownloads(command)) this.#choosers.add(addresseeOf(command));
    const { clientObserver } = this.browser;
    if (!clientObserver) return;
    const { method, written } = command;
    // What another thread has written out cannot be read here; nobody may have listened when it was.
    const told = written ? (command.told ?? tellWritten({ method, written })) : tellCommand(command);
    if (told) clientObserver.command(this.identity, told);
  }

  /** A session of the client is over. */
  detached(session: string): void {
    if (this.#choosers.delete(session)) this.#allowDownloads();
  }

  /** All of its sessions are over. */
  gone(): void {
    if (this.#choosers.size > 0) this.#allowDownloads();
  }

  /**
   * Chromium has gone back to its own default, which in headless-shell is to download nothing (Chromium 156,
   * docs/chromium.md#headless-shell).
   */
  #allowDownloads(): void {
    this.browser.chromium.allowDownloads().catch(() => {});
  }

  /** The first reason counts. */
  closed(end: ClientEnd): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.browser.clientObserver?.closed(this.identity, end);
  }
}

const choice = ".setDownloadBehavior";

/**
 * The session of a message that another thread has written out is not known: its choice lasts as the root's.
 */
const addresseeOf = ({ method, params, session = "" }: Command): string =>
  method === "Target.sendMessageToTarget" ? textOf(params["sessionId"]) : session;

const textOf = (value: unknown): string => (isText(value) ? value : "");

/**
 * Also within messages to targets, which the gate has written out itself, so that the name stands there
 * letter by letter.
 */
function choosesDownloads({ method, params, written }: Command): boolean {
  if (method !== "Target.sendMessageToTarget") return method.endsWith(choice);
  if (written) return Buffer.from(written.buffer, written.byteOffset, written.length).includes(choice);
  return textOf(params["message"]).includes(choice);
}
