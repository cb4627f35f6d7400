import type { Socket } from "node:net";
import type { BrowserId } from "../base/ids.js";
import { rawSocketOf } from "./dial.js";
import type { EgressUsage, Meter } from "./parts.js";
import type { DeniedBy } from "./rules.js";

interface SeenBytes {
  sent: number;
  received: number;
}

/**
 * The counts of one browser. Bytes are read off the outer sockets when they close and whenever somebody asks,
 * not as they pass.
 */
export class TrafficCounts {
  #requests = 0;
  readonly #denied: Partial<Record<DeniedBy, number>> = {};
  readonly #total: SeenBytes = { sent: 0, received: 0 };
  readonly #sockets = new Map<Socket, SeenBytes>();

  constructor(
    private readonly browser: BrowserId,
    private readonly meter: Meter,
  ) {}

  request(): void {
    this.#requests += 1;
  }

  passed(way: "direct" | "upstream"): void {
    this.meter.request(this.browser, way);
  }

  denied(by: DeniedBy): void {
    this.#denied[by] = (this.#denied[by] ?? 0) + 1;
    this.meter.request(this.browser, by);
  }

  /** Counts what an outer socket carries from its beginning to its end. */
  track(outer: Socket): void {
    const socket = rawSocketOf(outer);
    this.#sockets.set(socket, { sent: 0, received: 0 });
    socket.once("close", () => {
      this.#read(socket);
      this.#sockets.delete(socket);
    });
  }

  /** Adds what has passed since the last time. */
  read(): void {
    for (const socket of this.#sockets.keys()) this.#read(socket);
  }

  /** What has passed by now, both directions together. */
  carried(): number {
    this.read();
    return this.#total.sent + this.#total.received;
  }

  usage(connections: number): EgressUsage {
    this.read();
    return {
      requests: this.#requests,
      denied: { ...this.#denied },
      bytesSent: this.#total.sent,
      bytesReceived: this.#total.received,
      connections,
    };
  }

  #read(socket: Socket): void {
    const seen = this.#sockets.get(socket);
    if (!seen) return;
    const { bytesWritten, bytesRead } = socket;
    this.#add("sent", bytesWritten - seen.sent);
    this.#add("received", bytesRead - seen.received);
    seen.sent = bytesWritten;
    seen.received = bytesRead;
  }

  #add(direction: "sent" | "received", bytes: number): void {
    if (bytes <= 0) return;
    this.#total[direction] += bytes;
    this.meter.carried(this.browser, direction, bytes);
  }
}
