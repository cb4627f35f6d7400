import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { Clock } from "../base/clock.js";
import type { Pipe } from "../browser/pipe.js";
import type { Member, Seat } from "./bridge.js";
import { codes, type Command, errorReply, parseCommand, resultReply } from "./command.js";
import { Flow } from "./flow.js";
import type { Gate, Judgement, Surroundings } from "./gate.js";
import type { Limits } from "./limits.js";

/** Close codes: those of RFC 6455, and 4410 for a lease that is over. */
export const closeCodes = {
  asked: 1000, goingAway: 1001, notText: 1003, browserGone: 1011, restart: 1012, tooSlow: 1013, leaseOver: 4410,
} as const;

/** Counted for the metrics. */
export interface Traffic {
  received(bytes: number): void;
  sent(bytes: number): void;
  refused(method: string): void;
}

export interface ClientParts {
  readonly socket: Duplex;
  readonly pipe: Pick<Pipe, "hold" | "resume">;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly gate: Gate;
  readonly surroundings: Surroundings;
  readonly traffic: Traffic;
  /** Once, when nothing of the client is left. */
  readonly onGone: () => void;
}

/** One client's WebSocket: its commands go past the gate to its seat on the bridge, frames come back unread. */
export class Client implements Member {
  readonly #flow: Flow;
  #seat: Seat | undefined;
  #webSocket: WebSocket | undefined;
  #stopPings = (): void => {};
  #unansweredPings = 0;
  #isCorked = false;
  #leaving: Promise<void> | undefined;

  constructor(private readonly parts: ClientParts) {
    const { socket, pipe, clock, limits } = parts;
    this.#flow = new Flow(socket, pipe, { clock, limits, cut: (reason) => this.#cut(closeCodes.tooSlow, reason) });
  }

  /** The upgrade was accepted. */
  start(webSocket: WebSocket, seat: Seat): void {
    this.#seat = seat;
    this.#webSocket = webSocket;
    webSocket.on("message", (data, isBinary) => this.#take(data as Buffer, isBinary));
    webSocket.on("pong", () => (this.#unansweredPings = 0));
    // ws closes by itself after an error: 1009 for a message too long, 1007 for bad text.
    webSocket.on("error", () => {});
    webSocket.on("close", () => {
      this.#stopPings();
      this.#leave().finally(this.parts.onGone).catch(() => {});
    });
    this.#stopPings = this.parts.clock.every(this.parts.limits.pingMs, () => this.#ping());
    // The browser may have gone between the seat and the upgrade.
    if (this.#leaving) this.#hangUp(closeCodes.browserGone, "browser_gone");
  }

  deliver(frame: Buffer | string): void {
    if (this.#leaving || !this.#webSocket) return;
    this.#cork();
    this.#webSocket.send(frame, { binary: false, compress: false });
    this.parts.traffic.sent(frame.length);
    this.#flow.sent();
  }

  ended(reason: "target_closed" | "browser_gone"): void {
    this.#cut(reason === "target_closed" ? closeCodes.goingAway : closeCodes.browserGone, reason);
  }

  wait(): void {
    this.#webSocket?.pause();
  }

  proceed(): void {
    this.#webSocket?.resume();
  }

  /** Takes it off the bridge at once and closes the socket; resolves when Chromium has detached it, throws if it does not. */
  end(code: number, reason: string): Promise<void> {
    const left = this.#leave();
    this.#hangUp(code, reason);
    return left;
  }

  #cut(code: number, reason: string): void {
    this.end(code, reason).catch(() => {});
  }

  #leave(): Promise<void> {
    this.#flow.end();
    this.#leaving ??= this.#seat?.leave() ?? Promise.resolve();
    return this.#leaving;
  }

  #hangUp(code: number, reason: string): void {
    const webSocket = this.#webSocket;
    if (!webSocket || webSocket.readyState === webSocket.CLOSED) return;
    webSocket.resume();
    webSocket.close(code, reason);
    const cancel = this.parts.clock.after(this.parts.limits.closeMs, () => webSocket.terminate());
    webSocket.once("close", cancel);
  }

  #ping(): void {
    if (this.#unansweredPings >= 2) return this.#webSocket?.terminate();
    this.#unansweredPings += 1;
    if (!this.#leaving) this.#webSocket?.ping();
  }

  /** Frames that came in one read of the pipe go out in one write. */
  #cork(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.parts.socket.cork();
    process.nextTick(() => {
      this.#isCorked = false;
      this.parts.socket.uncork();
    });
  }

  #take(data: Buffer, isBinary: boolean): void {
    if (this.#leaving) return;
    this.parts.traffic.received(data.length);
    if (isBinary) return this.#cut(closeCodes.notText, "CDP messages are text");
    const parsed = parseCommand(data.toString());
    if (parsed.kind === "fault") return this.deliver(parsed.reply);
    try {
      this.#act(parsed.command, this.parts.gate(parsed.command, this.parts.surroundings));
    } catch {
      // JSON.stringify overflows the stack on nesting that JSON.parse takes; Chromium refuses such depth too.
      this.deliver(errorReply(parsed.command, codes.invalid, "The message cannot be processed"));
    }
  }

  #act(command: Command, judgement: Judgement): void {
    if (judgement.kind === "pass") return this.#seat?.send(judgement.command);
    if (judgement.kind === "refuse") {
      this.parts.traffic.refused(command.method);
      return this.deliver(errorReply(command, codes.refused, judgement.message));
    }
    this.deliver(resultReply(command, judgement.result));
    if (judgement.andDisconnect) this.#cut(closeCodes.asked, "disconnected as asked");
  }
}
