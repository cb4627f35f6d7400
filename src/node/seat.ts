import type { Command } from "./command.js";

/** A client, as the bridge sees it. */
export interface Member {
  deliver(frame: Buffer | string): void;
  /** Its root session is over; nothing more will come. */
  ended(reason: "target_closed" | "browser_gone"): void;
  /** Chromium is behind with reading: send no more until it has caught up. */
  wait(): void;
  proceed(): void;
}

/** Where a client's root session is attached: the browser, or one target as `/devtools/page/…` asks for. */
export type Root = { readonly kind: "browser" } | { readonly kind: "target"; readonly target: string };

/** A client's place on the bridge. */
export interface Seat {
  send(command: Command): void;
  /** Detaches the root session, whereupon Chromium ends what the client attached and disposes its contexts. */
  leave(): Promise<void>;
}
