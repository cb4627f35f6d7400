import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { Clock } from "../base/clock.js";
import type { BrowserId } from "../base/ids.js";
import type { Pipe } from "../browser/cdp/pipe.js";
import { bytesOf, type Frame } from "../browser/cdp/frame.js";
import type { BridgeClient, BridgeConnection, BridgeEndReason } from "./cdp/connection.js";
import { closeCodeOf, closeCodes, endOf, endOfError } from "./close-codes.js";
import type { Account, Budget } from "../base/budget.js";
import { codes, type Command, errorReply, resultReply } from "./cdp/command.js";
import { Backpressure } from "./backpressure.js";
import type { Gate, Judgement, GateContext } from "./gates/gate.js";
import { FrameWriter } from "./frame-writer.js";
import { Inbox } from "./inbox.js";
import { IncomingFrames } from "./incoming-frames.js";
import type { ClientEnd, TrafficMeter } from "./ports.js";
import { Outbox } from "./outbox.js";
import { Pings } from "./pings.js";
import { ReadPace } from "./read-pace.js";
import type { JudgedMessage } from "./gates/judge.js";
import type { JudgeThreads } from "./gates/judge-threads.js";
import type { GatewayLimits } from "./limits.js";
import type { FairTurn } from "../base/fair-turns.js";
import type { ObservedClient } from "./observed-client.js";
import type { Standstill } from "./standstill.js";
import type { OpenTranslator, Translator } from "./translator.js";

/** What the clients of a daemon share, so that none takes it all. */
export interface SharedParts {
  readonly judgeThreads: Pick<JudgeThreads, "judge">;
  readonly standstill?: Pick<Standstill, "doubt"> | undefined;
  /** Bytes of messages that are not whole or not yet judged. */
  readonly unfinished: Budget;
  /** Bytes that clients have not read. */
  readonly unread: Budget;
}

interface ClientParts {
  readonly browser: BrowserId;
  readonly shared: SharedParts;
  readonly turn: FairTurn;
  readonly socket: Duplex;
  readonly pipe: Pick<Pipe, "hold" | "resume">;
  readonly clock: Clock;
  readonly limits: GatewayLimits;
  readonly gate: Gate;
  readonly context: GateContext;
  readonly traffic: TrafficMeter;
  readonly observed: ObservedClient;
  /** Absent where the client speaks CDP itself. */
  readonly translator?: OpenTranslator | undefined;
  /** Called once, when nothing of the client is left. */
  readonly onGone: () => void;
}

/**
 * One client's WebSocket: its commands go past the gate to the bridge, frames come back unread. Where it
 * speaks another protocol, a translator stands between its socket and all that.
 */
export class CdpClient implements BridgeClient {
  readonly #flow: Backpressure;
  readonly #inbox: Inbox;
  readonly #outbox: Outbox;
  readonly #writer: FrameWriter;
  readonly #incoming = new IncomingFrames();
  readonly #readPace: ReadPace;
  readonly #unfinished: Account;
  readonly #unread: Account;
  readonly #translator: Translator | undefined;
  #keptBytes = 0;
  #pauses = 0;
  #connection: BridgeConnection | undefined;
  #webSocket: WebSocket | undefined;
  #pings: Pings | undefined;
  #detaching: Promise<void> | undefined;

  constructor(private readonly parts: ClientParts) {
    const { browser, shared, socket, pipe, clock, limits, gate, context, turn, observed } = parts;
    this.#unfinished = shared.unfinished.open(browser, () => this.#drop("too much is sent and not finished"));
    this.#unread = shared.unread.open(browser, () => this.#drop("too much is unread"));
    const member = { wait: () => this.wait(), proceed: () => this.proceed() };
    this.#flow = new Backpressure(
      socket,
      { ...member, pipe },
      { clock, limits, unread: this.#unread, cut: (reason) => this.#cut(closeCodes.tooSlow, reason) },
    );
    this.#readPace = new ReadPace({ ...member, socket, turn, clock, incoming: this.#incoming });
    this.#inbox = new Inbox({
      ...member,
      gate,
      context,
      turn,
      judgeElsewhere: (message, gone) =>
        shared.judgeThreads.judge({
          browser,
          gone,
          message,
          context,
          isObserved: observed.isObserved,
          spent: (tookMs) => turn.spend(tookMs),
        }),
      act: (judged) => this.#act(judged),
      doubt: () => shared.standstill?.doubt,
      kept: (bytes) => this.#keep(bytes),
    });
    this.#writer = new FrameWriter(socket);
    this.#outbox = new Outbox({
      send: (frame) => this.#deliver(frame),
      doubt: () => shared.standstill?.doubt,
      kept: shared.unread.open(browser, () => this.#drop("too much is unread")),
    });
    this.#translator = parts.translator?.({
      ...member,
      toClient: (message) => this.#send(message),
      toBrowser: (command) => this.#inbox.add(command),
      // Whatever the code is, the browser goes on.
      over: (code, reason) => this.#cut(code, reason, code === closeCodes.asked ? "left" : "cut"),
    });
  }

  /** Has to be called once the upgrade was accepted. */
  start(webSocket: WebSocket, bridgeConnection: BridgeConnection): void {
    this.#connection = bridgeConnection;
    this.#webSocket = webSocket;
    this.parts.observed.opened();
    this.#translator?.start();
    // This runs before ws and again after it, which reads the same bytes.
    this.parts.socket.prependListener("data", (chunk: Buffer) => this.#receive(chunk));
    this.parts.socket.on("data", () => this.#received());
    webSocket.on("message", (data, isBinary) => this.#take(data as Buffer, isBinary));
    // ws has answered it, whether that is read or not.
    webSocket.on("ping", () => this.#flow.sent());
    // ws closes by itself after an error: 1009 for a message too long, 1007 for bad text.
    webSocket.on("error", (error) => this.#failed(error));
    webSocket.on("close", () => {
      this.parts.observed.closed("left");
      this.#pings?.stop();
      this.#unfinished.close();
      this.#unread.close();
      this.#detach()
        .finally(this.parts.onGone)
        .catch(() => {});
    });
    const { clock, limits } = this.parts;
    this.#pings = new Pings({ clock, limits, webSocket, isHeld: () => this.#pauses > 0 });
    // The browser may have gone between its attachment and the upgrade.
    if (this.#detaching) this.#hangUp(closeCodes.browserGone, "browser_gone");
  }

  /** Whether what the browser says reaches it. */
  get isConnected(): boolean {
    return this.#webSocket !== undefined && !this.#detaching;
  }

  deliver(frame: Frame | string): void {
    this.#outbox.add(frame);
  }

  #deliver(frame: Frame | string): void {
    if (!this.#translator) return this.#send(frame);
    if (!this.#detaching) this.#translator.fromBrowser(frame);
  }

  #send(frame: Frame | string): void {
    const webSocket = this.#webSocket;
    if (this.#detaching || !webSocket || webSocket.readyState !== webSocket.OPEN) return;
    this.#writer.write(webSocket, frame);
    this.parts.observed.message();
    this.parts.traffic.sent(typeof frame === "string" ? frame.length : bytesOf(frame));
    this.#flow.sent();
  }

  readonly sent = (command: Command): void => this.parts.observed.command(command);
  readonly detached = (session: string): void => this.parts.observed.detached(session);

  ended(reason: BridgeEndReason): void {
    if (reason !== "too_many_sessions") this.parts.observed.closed("browser");
    this.#cut(closeCodeOf[reason], reason);
  }

  /** Every `wait` has to be followed by one `proceed`. */
  wait(): void {
    this.#pauses += 1;
    this.#webSocket?.pause();
    this.#readPace.pause();
    this.#translator?.wait();
  }

  proceed(): void {
    this.#pauses = Math.max(0, this.#pauses - 1);
    if (this.#pauses > 0) return;
    this.#webSocket?.resume();
    this.#readPace.resume();
    this.#translator?.proceed();
  }

  /**
   * Takes it off the bridge at once and closes the socket; resolves when Chromium has detached it, throws if
   * it does not.
   */
  end(code: number, reason: string, told = endOf(code)): Promise<void> {
    this.parts.observed.closed(told);
    const left = this.#detach();
    this.#hangUp(code, reason);
    return left;
  }

  /** Nothing more is read of it, and what it has said before is not carried out either. */
  #failed(fault: Error): void {
    this.parts.observed.closed(endOfError(fault));
    this.#detach().catch(() => {});
  }

  #cut(code: number, reason: string, told?: ClientEnd): void {
    this.end(code, reason, told).catch(() => {});
  }

  /**
   * Ends the socket at once, without waiting for the client's close frame: until that came it would keep what
   * it holds.
   */
  #drop(reason: string): void {
    this.#cut(closeCodes.tooSlow, reason);
    setImmediate(() => this.#webSocket?.terminate());
  }

  #detach(): Promise<void> {
    this.#flow.end();
    this.#inbox.close();
    this.#outbox.close();
    this.#translator?.close();
    this.#detaching ??= this.#connection?.detach() ?? Promise.resolve();
    return this.#detaching;
  }

  #hangUp(code: number, reason: string): void {
    const webSocket = this.#webSocket;
    if (!webSocket || webSocket.readyState === webSocket.CLOSED) return;
    webSocket.resume();
    this.#readPace.resume();
    webSocket.close(code, reason);
    const cancel = this.parts.clock.after(this.parts.limits.closeMs, () => webSocket.terminate());
    webSocket.once("close", cancel);
  }

  #receive(chunk: Buffer): void {
    this.#pings?.heard();
    this.#readPace.begin(chunk);
    this.#incoming.take(chunk);
    this.#count();
  }

  #received(): void {
    if (!this.#detaching) this.#readPace.end();
  }

  #keep(bytes: number): void {
    this.#keptBytes = bytes;
    this.#count();
  }

  #count(): void {
    if (!this.#detaching) this.#unfinished.set(this.#incoming.unfinishedBytes + this.#keptBytes);
  }

  #take(data: Buffer, isBinary: boolean): void {
    if (this.#detaching) return;
    this.parts.traffic.received(data.length);
    this.parts.observed.message();
    if (isBinary) return this.#cut(closeCodes.notText, "messages are text");
    if (this.#translator) this.#translator.fromClient(data);
    else this.#inbox.add(data);
    this.#readPace.given();
  }

  #act(judged: JudgedMessage): void {
    if (judged.kind === "fault") return this.deliver(judged.reply);
    this.#carryOut(judged.command, judged.judgement);
  }

  #carryOut(command: Command, judgement: Judgement): void {
    if (judgement.kind === "pass") {
      if (this.#connection?.send(judgement.command)) this.parts.observed.command(judgement.command);
      return;
    }
    if (judgement.kind === "refuse") {
      this.parts.traffic.refused(command.method);
      return this.deliver(errorReply(command, codes.refused, judgement.message));
    }
    this.parts.observed.command(command);
    this.deliver(resultReply(command, judgement.result));
    if (judgement.andDisconnect) this.#cut(closeCodes.asked, "disconnected as asked");
  }
}
