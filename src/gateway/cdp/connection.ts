import type { Frame } from "../../browser/cdp/frame.js";
import type { Command } from "./command.js";

/** `too_many_sessions`: more were attached for the client than it may have. */
export type BridgeEndReason = "target_closed" | "browser_gone" | "too_many_sessions";

/** A client, as the bridge sees it. */
export interface BridgeClient {
  deliver(frame: Frame | string): void;
  /** A command that had to wait has gone to Chromium after all. */
  sent(command: Command): void;
  /** A session of the client is over. */
  detached(session: string): void;
  /** The client's root session is over, or has to be; nothing more will come. */
  ended(reason: BridgeEndReason): void;
  /** Chromium is behind with reading: send no more until it has caught up. */
  wait(): void;
  proceed(): void;
}

/** What a client's root session is attached to: the browser, or one target as `/devtools/page/…` asks for. */
export type RootTarget = { readonly kind: "browser" } | { readonly kind: "target"; readonly target: string };

/** One client's attachment to the bridge. */
export interface BridgeConnection {
  /** False where it has not gone to Chromium: the client was told why, or it waits, and `sent` may follow. */
  send(command: Command): boolean;
  /**
   * Detaches the root session, whereupon Chromium ends what the client attached and disposes its contexts.
   */
  detach(): Promise<void>;
}

/** Is told of what happens on the pipe; it has to be as good as nothing, for it runs with each command. */
export interface BridgeRecorder {
  /** A command of a client went to Chromium. */
  sent(method: string): void;
  state(state: "page_crashed"): void;
}
