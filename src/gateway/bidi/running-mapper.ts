import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Duplex, Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Account } from "../../base/budget.js";
import type { BrowserId } from "../../base/ids.js";
import type { Clock, Millis } from "../../base/clock.js";
import { type Log, textOf } from "../../base/log.js";
import type { Chromium, Sidecar } from "../../browser/chromium.js";
import { bytesOf, type Frame, wholeOf } from "../../browser/cdp/frame.js";
import { Backpressure } from "../backpressure.js";
import type { SharedParts } from "../client.js";
import { closeCodes } from "../close-codes.js";
import type { GatewayLimits } from "../limits.js";
import type { Translator, TranslatorCallbacks } from "../translator.js";
import type { MapperSetup } from "./conversation.js";
import { PacketReader, writePacket } from "./packets.js";

interface MapperParts {
  /** The compiled mapper-process.js. */
  readonly script: URL;
  readonly setup: MapperSetup;
  readonly chromium: Pick<Chromium, "pipe" | "startSidecar">;
  readonly log: Log;
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
 * A command of CDP may be longer than the command of BiDi that it comes of: a body becomes base64. The
 * threads that judge it have memory for no more (judge-threads.ts).
 */
const mostGrowth = 2;

/** Two processes that are ended at once have ended within this, also on a busy machine. */
const besideBrowserMs: Millis = 2000;
const mostLooks = 2;

/**
 * It is pinged twice as often as a client (pings.ts) and cut first: of a client from whom nothing is read,
 * because its mapper takes nothing, nothing can be heard either.
 */
const mostUnansweredPings = 3;

/**
 * A process that translates WebDriver BiDi for one client. It parses whatever the client and its pages say,
 * so it may grow, hang or die as they will: that ends no more than the client. It stands behind walls like
 * the browser's, since nothing that it says is believed but what its client may say.
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
  /** What the client has said before there was a process. */
  #early: Buffer[] = [];
  #unansweredPings = 0;
  #stopPings = (): void => {};
  #cancelEnd: (() => void) | undefined;
  #isBehind = false;
  #isClosed = false;

  constructor(
    private readonly parts: MapperParts,
    private readonly callbacks: TranslatorCallbacks,
  ) {
    const { browser, shared } = parts;
    const drop = (reason: string) => (): void => this.#over(closeCodes.tooSlow, reason);
    this.#unread = shared.unread.open(browser, drop("too much is unread"));
    this.#unfinished = shared.unfinished.open(browser, drop("too much is sent and not finished"));
  }

  start(): void {
    if (this.#isClosed) return;
    this.callbacks.wait();
    this.#start()
      .catch((error: unknown) => {
        // The machine lacks what another process needs, or the browser has just ended.
        this.parts.log.warn({ error: textOf(error) }, "a BiDi mapper could not be started");
        this.#gone();
      })
      .finally(() => this.callbacks.proceed());
  }

  async #start(): Promise<void> {
    const { script, setup, limits, clock, chromium } = this.parts;
    const child = await chromium.startSidecar(mapperProgram(script, limits.bidiHeapBytes));
    child.once("exit", () => this.#gone()).once("error", () => this.#gone());
    this.#process = child;
    this.#client = this.#read(child.stdio[3] as Duplex, limits.cutBytes, (frame) => this.#say(frame));
    this.#browser = this.#read(child.stdio[4] as Duplex, limits.messageBytes * mostGrowth, (frame) =>
      this.callbacks.toBrowser(wholeOf(frame)),
    );
    if (this.#isClosed) return this.#kill();
    const cut = (reason: string): void => this.#over(closeCodes.tooSlow, `the BiDi mapper is ${reason}`);
    const held = {
      wait: () => this.callbacks.wait(),
      proceed: () => this.callbacks.proceed(),
      pipe: chromium.pipe,
    };
    this.#flow = new Backpressure(this.#browser, held, { clock, limits, unread: this.#unread, cut });
    this.#watch(child.stdio[0] as Writable, child.stdio[1] as Readable);
    writePacket(this.#client, JSON.stringify(setup));
    for (const message of this.#early.splice(0)) this.fromClient(message);
  }

  /** It answers on streams of its own, which nothing else holds up. */
  #watch(pings: Writable, pongs: Readable): void {
    for (const stream of [pings, pongs]) stream.on("error", () => {});
    pongs.on("data", () => (this.#unansweredPings = 0));
    const { clock, limits } = this.parts;
    this.#stopPings = clock.every(limits.pingMs / 2, () => {
      if (this.#unansweredPings >= mostUnansweredPings)
        return this.#over(closeCodes.tooSlow, "the BiDi mapper of this client hangs");
      this.#unansweredPings += 1;
      pings.write(".");
    });
  }

  fromClient(message: Buffer): void {
    if (this.#hasEnded) return;
    if (!this.#client) return void this.#early.push(message);
    writePacket(this.#client, message);
    const { writableLength } = this.#client;
    if (writableLength <= waitingBytes) return;
    this.#unfinished.set(writableLength);
    if (this.#isBehind) return;
    this.#isBehind = true;
    this.callbacks.wait();
    this.#client.once("drain", () => {
      this.#isBehind = false;
      this.#unfinished.set(0);
      this.callbacks.proceed();
    });
  }

  fromBrowser(message: Frame | string): void {
    if (this.#hasEnded || !this.#browser) return;
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
    this.#early = [];
    this.#stopPings();
    this.#cancelEnd?.();
    this.#flow?.end();
    this.#unread.close();
    this.#unfinished.close();
    this.#kill();
  }

  #kill(): void {
    this.#process?.kill("SIGKILL");
    for (const stream of this.#process?.stdio ?? []) stream?.destroy();
  }

  #read(socket: Duplex, mostBytes: number, take: (frame: Frame) => void): Duplex {
    const exceeded = (): void => this.#over(closeCodes.tooSlow, "the BiDi mapper says more than it may");
    const reader = new PacketReader((frame) => (this.#isClosed ? undefined : take(frame)), {
      mostBytes,
      exceeded,
    });
    // Its exit tells that it has gone.
    return socket.on("error", () => {}).on("data", (chunk: Buffer) => reader.push(chunk));
  }

  #say(frame: Frame): void {
    const bytes = bytesOf(frame);
    if (bytes > 0) return this.callbacks.toClient(bytes > longBytes ? frame : wholeOf(frame));
    this.#over(closeCodes.asked, "disconnected as asked");
  }

  /** Whether nobody is left to hear what is said. */
  get #hasEnded(): boolean {
    return this.#isClosed || this.#cancelEnd !== undefined;
  }

  /**
   * Where it has ended with its browser, the client hears of that, which may come a moment later. Until then
   * nothing is kept for the mapper, and nobody waits for it.
   */
  #gone(): void {
    if (this.#hasEnded) return;
    let looks = 0;
    // Where this process stood still, the end of the browser is read before the next look.
    this.#cancelEnd = this.parts.clock.every(besideBrowserMs / mostLooks, () => {
      looks += 1;
      if (looks < mostLooks) return;
      this.#over(closeCodes.browserGone, "the BiDi mapper of this client has ended");
    });
    this.#early = [];
    this.#stopPings();
    this.#flow?.end();
  }

  #over(code: number, reason: string): void {
    if (!this.#isClosed) this.callbacks.over(code, reason);
  }
}

/** Node.js itself, its code, and what waits to be sent by each of its two sockets (mapper-process.ts). */
const besidesHeapBytes = 640 * 2 ** 20;

const flags = ["--no-addons", "--disallow-code-generation-from-strings"];

/**
 * The command line of a mapper, and the files that it is made of. `script` is the compiled mapper-process.js.
 */
export function mapperProgram(script: URL, heapBytes: number): Sidecar {
  const path = fileURLToPath(script);
  const heap = `--max-old-space-size=${Math.ceil(heapBytes / 2 ** 20)}`;
  return {
    command: [process.execPath, heap, ...flags, path],
    files: filesOf(path),
    memoryBytes: heapBytes + besidesHeapBytes,
  };
}

/** Node.js, our own compiled code, the package.json that says how to read it, and the packages. */
function filesOf(script: string): readonly string[] {
  const sources = dirname(dirname(dirname(script)));
  const manifest = findAbove(sources, "package.json").slice(0, 1);
  return [process.execPath, sources, ...manifest, ...findAbove(sources, "node_modules")];
}

/** What is called so in the directories above, the nearest first. */
function findAbove(directory: string, name: string): readonly string[] {
  const parent = dirname(directory);
  if (parent === directory) return [];
  const path = join(parent, name);
  return [...(existsSync(path) ? [path] : []), ...findAbove(parent, name)];
}
