import { type ChildProcess, spawn } from "node:child_process";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Account } from "../../base/budget.js";
import type { BrowserId } from "../../base/ids.js";
import type { Clock } from "../../base/clock.js";
import { bytesOf, type Frame, wholeOf } from "../../browser/cdp/frame.js";
import type { Pipe } from "../../browser/cdp/pipe.js";
import { Backpressure } from "../backpressure.js";
import type { SharedParts } from "../client.js";
import { closeCodes } from "../close-codes.js";
import type { GatewayLimits } from "../limits.js";
import type { Translator, TranslatorEnds } from "../translator.js";
import type { MapperSetup } from "./conversation.js";
import { PacketReader, writePacket } from "./packets.js";

interface MapperParts {
  /** The compiled mapper-process.js. */
  readonly script: URL;
  readonly setup: MapperSetup;
  readonly pipe: Pick<Pipe, "hold" | "resume">;
  readonly clock: Clock;
  readonly limits: GatewayLimits;
  readonly browser: BrowserId;
  readonly shared: Pick<SharedParts, "unread" | "unfinished">;
}

/** The client is read no further while the process has so much of it unread. */
const waitingBytes = 256 * 1024;

/** A longer message is not put together, since that would take everybody's time. */
const longBytes = 256 * 1024;

/**
 * A process that translates WebDriver BiDi for one client. It parses whatever the client and its pages say,
 * so it may grow, hang or die as they will: that ends no more than the client.
 */
export class RunningMapper implements Translator {
  #process: ChildProcess | undefined;
  #client: Duplex | undefined;
  #browser: Duplex | undefined;
  #flow: Backpressure | undefined;
  /** What the process has not read of what the browser says. */
  readonly #unread: Account;
  /** The same of what the client says. */
  readonly #unfinished: Account;
  #isBehind = false;
  #isClosed = false;

  constructor(
    private readonly parts: MapperParts,
    private readonly ends: TranslatorEnds,
  ) {
    const { browser, shared } = parts;
    const drop = (reason: string) => (): void => this.#over(closeCodes.tooSlow, reason);
    this.#unread = shared.unread.open(browser, drop("too much is unread"));
    this.#unfinished = shared.unfinished.open(browser, drop("too much is sent and not finished"));
  }

  start(): void {
    if (this.#isClosed) return;
    try {
      this.#start();
    } catch {
      // What the machine lacks for another process.
      setImmediate(() => this.#gone());
    }
  }

  #start(): void {
    const { script, setup, limits, clock, pipe } = this.parts;
    const heap = `--max-old-space-size=${Math.ceil(limits.bidiHeapBytes / 2 ** 20)}`;
    // A session of its own, so that no signal of a terminal reaches it; it ends with its sockets.
    const child = spawn(process.execPath, [heap, fileURLToPath(script)], {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
      cwd: "/",
      env: {},
      detached: true,
    });
    child.once("exit", () => this.#gone()).once("error", () => this.#gone());
    this.#process = child;
    this.#client = this.#read(child.stdio[3] as Duplex, (frame) => this.#say(frame));
    this.#browser = this.#read(child.stdio[4] as Duplex, (frame) => this.ends.toBrowser(wholeOf(frame)));
    const cut = (reason: string): void => this.#over(closeCodes.tooSlow, `the BiDi mapper is ${reason}`);
    const held = { wait: () => this.ends.wait(), proceed: () => this.ends.proceed(), pipe };
    this.#flow = new Backpressure(this.#browser, held, { clock, limits, unread: this.#unread, cut });
    writePacket(this.#client, JSON.stringify(setup));
  }

  fromClient(message: Buffer): void {
    if (this.#isClosed || !this.#client) return;
    writePacket(this.#client, message);
    const { writableLength } = this.#client;
    if (writableLength <= waitingBytes) return;
    this.#unfinished.set(writableLength);
    if (this.#isBehind) return;
    this.#isBehind = true;
    this.ends.wait();
    this.#client.once("drain", () => {
      this.#isBehind = false;
      this.#unfinished.set(0);
      this.ends.proceed();
    });
  }

  fromBrowser(message: Frame | string): void {
    if (this.#isClosed || !this.#browser) return;
    writePacket(this.#browser, message);
    this.#flow?.sent();
  }

  wait(): void {
    this.#client?.pause();
    this.#browser?.pause();
  }

  proceed(): void {
    this.#client?.resume();
    this.#browser?.resume();
  }

  close(): void {
    this.#isClosed = true;
    this.#flow?.end();
    this.#unread.close();
    this.#unfinished.close();
    this.#process?.kill("SIGKILL");
    for (const socket of [this.#client, this.#browser]) socket?.destroy();
  }

  #read(socket: Duplex, take: (frame: Frame) => void): Duplex {
    const reader = new PacketReader((frame) => {
      if (!this.#isClosed) take(frame);
    });
    // Its exit tells that it has gone.
    return socket.on("error", () => {}).on("data", (chunk: Buffer) => reader.push(chunk));
  }

  #say(frame: Frame): void {
    const bytes = bytesOf(frame);
    if (bytes > 0) return this.ends.toClient(bytes > longBytes ? frame : wholeOf(frame));
    this.#over(closeCodes.asked, "disconnected as asked");
  }

  #gone(): void {
    this.#over(closeCodes.browserGone, "the BiDi mapper of this client has ended");
  }

  #over(code: number, reason: string): void {
    if (!this.#isClosed) this.ends.over(code, reason);
  }
}
