import { tellCommand } from "../telemetry/commands/tell.js";
import type { Command } from "./cdp/command.js";
import type { ClientEnd, ClientIdentity, LocalBrowser } from "./ports.js";

/**
 * Tells whoever listens what one client does. While nobody does, each message costs a look at whether
 * somebody does.
 */
export class ObservedClient {
  #isOpen = false;
  #hasChosenDownloads = false;

  constructor(
    private readonly browser: Pick<LocalBrowser, "clientObserver">,
    private readonly identity: ClientIdentity,
  ) {}

  get isObserved(): boolean {
    return this.browser.clientObserver !== undefined;
  }

  /** It has told Chromium where downloads go; that ends with its session. */
  get hasChosenDownloads(): boolean {
    return this.#hasChosenDownloads;
  }

  opened(): void {
    this.#isOpen = true;
    this.browser.clientObserver?.opened(this.identity);
  }

  message(): void {
    this.browser.clientObserver?.message(this.identity);
  }

  command(command: Command): void {
    this.#hasChosenDownloads ||= choosesDownloads(command);
    const { clientObserver } = this.browser;
    if (!clientObserver) return;
    // What another thread has written out cannot be read here.
    const told = command.written ? command.told : tellCommand(command);
    if (told) clientObserver.command(this.identity, told);
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
 * Also within messages to targets, which the gate has written out itself, so that the name stands there
 * letter by letter.
 */
function choosesDownloads({ method, params, written }: Command): boolean {
  if (method !== "Target.sendMessageToTarget") return method.endsWith(choice);
  if (written) return Buffer.from(written.buffer, written.byteOffset, written.length).includes(choice);
  return String(params["message"]).includes(choice);
}
