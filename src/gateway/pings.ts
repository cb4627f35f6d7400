import type { WebSocket } from "ws";
import type { Clock } from "../base/clock.js";
import type { GatewayLimits } from "./limits.js";

interface PingedClient {
  readonly clock: Pick<Clock, "every">;
  readonly limits: Pick<GatewayLimits, "pingMs">;
  readonly webSocket: Pick<WebSocket, "ping" | "terminate">;
  /** Whether nothing is read of it just now. */
  isHeld(): boolean;
}

/**
 * How much a ping without an answer counts, and how much of it is borne: two pings of a client that is read,
 * twenty of one that is held.
 */
const silence = { read: 10, held: 1, most: 20 } as const;

/**
 * Pings a client, and ends it where it has died without a word. Whatever is read of it counts as an answer:
 * its pong stands behind all that it has sent before, which is read no faster than its browser's turn allows.
 * While it is held nothing is heard of it at all; most holds have limits of their own, and end before this.
 */
export class Pings {
  #silence = 0;
  readonly #stop: () => void;

  constructor(private readonly client: PingedClient) {
    this.#stop = client.clock.every(client.limits.pingMs, () => this.#ping());
  }

  /** Has to be called when something was read of the client. */
  heard(): void {
    this.#silence = 0;
  }

  stop(): void {
    this.#stop();
  }

  #ping(): void {
    const { webSocket, isHeld } = this.client;
    if (this.#silence >= silence.most) return webSocket.terminate();
    this.#silence += isHeld() ? silence.held : silence.read;
    // Also one that is held: a daemon that relays it hears by that that this node lives.
    webSocket.ping();
  }
}
