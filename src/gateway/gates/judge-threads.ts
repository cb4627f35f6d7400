import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { Clock, Millis } from "../../base/clock.js";
import type { BrowserId } from "../../base/ids.js";
import { type Log, textOf } from "../../base/log.js";
import type { JudgedMessage } from "./judge.js";
import type { Task } from "./judge-worker.js";

interface JudgeThreadsParts {
  /** The compiled judge-worker.js. */
  readonly script: URL;
  readonly clock: Clock;
  readonly log: Log;
  /** No message is longer. */
  readonly longestBytes: number;
}

/** A message and whose it is. */
interface MessageToJudge extends Task {
  readonly browser: BrowserId;
  /** Aborted when nobody waits for it any more. */
  readonly gone: AbortSignal;
  /** Called with how long a thread had the message. */
  spent(tookMs: Millis): void;
}

interface WaitingTask {
  readonly task: Task;
  readonly spent: MessageToJudge["spent"];
  readonly resolve: (judged: JudgedMessage | undefined) => void;
}

/**
 * One is enough for what clients of several browsers send; the second is for when the first has a hostile
 * message.
 */
const mostWorkers = Math.min(2, Math.max(1, availableParallelism() - 1));
/** A message of 16 MiB, of whatever make, takes less than a second; longer ones take as much longer. */
const limitMsOf = (bytes: number): Millis => Math.max(1, bytes / (16 * 1024 * 1024)) * 10_000;
/** Where the kernel gave no thread: for so long none is asked for again. */
const restMs: Millis = 1000;
/**
 * V8 ends the whole daemon, not only the thread, where one string is longer than what is left of the heap.
 * A message takes up to 16 times its length: the worst has a character beyond Latin-1 and is carried by four
 * others (Node.js 20.20). A command that comes of a client of WebDriver BiDi may be twice as long as a
 * message.
 */
const heapPerByte = 32;
const leastHeapMebibytes = 512;
const heapMebibytesFor = (longestBytes: number): number =>
  Math.max(leastHeapMebibytes, Math.ceil((longestBytes * heapPerByte) / 2 ** 20));

/**
 * Reads and judges long messages in threads of their own, which are started when there is one. Browsers take
 * turns, so that one that brings many does not keep the others waiting.
 */
export class JudgeThreads {
  readonly #idle: Worker[] = [];
  readonly #workers = new Set<Worker>();
  readonly #waiting = new Map<BrowserId, WaitingTask[]>();
  #isClosed = false;
  #restsUntil: Millis = -Infinity;

  constructor(private readonly parts: JudgeThreadsParts) {}

  /** Starts the first thread, so that the first long message does not wait for that. */
  open(): void {
    if (this.#workers.size > 0) return;
    const worker = this.#start();
    if (worker) this.#idle.push(worker);
  }

  /**
   * Undefined where it could not be judged in time, or at all, or nobody waits for it. The message is
   * transferred to the thread, so the caller cannot use it any more.
   */
  judge({ browser, gone, spent, ...task }: MessageToJudge): Promise<JudgedMessage | undefined> {
    if (this.#isClosed || gone.aborted) return Promise.resolve(undefined);
    return new Promise((settle) => {
      const resolve: WaitingTask["resolve"] = (judged) => {
        gone.removeEventListener("abort", drop);
        settle(judged);
      };
      const one = { task, spent, resolve };
      const drop = (): void => this.#dropMessage(browser, one);
      gone.addEventListener("abort", drop);
      const waiting = this.#waiting.get(browser);
      if (waiting) waiting.push(one);
      else this.#waiting.set(browser, [one]);
      this.#proceed();
    });
  }

  /** One that a thread has already stays there. */
  #dropMessage(browser: BrowserId, dropped: WaitingTask): void {
    const waiting = this.#waiting.get(browser) ?? [];
    const place = waiting.indexOf(dropped);
    if (place === -1) return;
    waiting.splice(place, 1);
    if (waiting.length === 0) this.#waiting.delete(browser);
    dropped.resolve(undefined);
  }

  /** What is still waiting is not judged. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#giveUp();
    await Promise.all([...this.#workers].map((worker) => worker.terminate()));
  }

  #proceed(): void {
    while (this.#waiting.size > 0) {
      const worker = this.#idle.pop() ?? this.#start();
      if (worker) this.#giveNext(worker);
      else if (this.#workers.size === 0) this.#giveUp();
      else return;
    }
  }

  #giveUp(): void {
    for (const waiting of this.#waiting.values()) for (const { resolve } of waiting) resolve(undefined);
    this.#waiting.clear();
  }

  /** Gives a message of the browser whose turn it is, which then comes last. */
  #giveNext(worker: Worker): void {
    for (const [browser, waiting] of this.#waiting) {
      const next = waiting.shift();
      this.#waiting.delete(browser);
      if (waiting.length > 0) this.#waiting.set(browser, waiting);
      if (next) return this.#give(worker, next);
    }
  }

  /** Undefined where there are enough, and where the daemon may have no further thread. */
  #start(): Worker | undefined {
    const { clock, log } = this.parts;
    if (this.#workers.size >= mostWorkers || this.#isClosed || clock.monotonic() < this.#restsUntil)
      return undefined;
    try {
      return this.#startNow();
    } catch (error) {
      this.#restsUntil = clock.monotonic() + restMs;
      log.warn({ error: textOf(error) }, "a thread that judges messages cannot be started");
      return undefined;
    }
  }

  #startNow(): Worker {
    const worker = new Worker(this.parts.script, {
      resourceLimits: { maxOldGenerationSizeMb: heapMebibytesFor(this.parts.longestBytes) },
    });
    worker.unref();
    worker.on("error", (error) =>
      this.parts.log.warn({ error: textOf(error) }, "a thread that judges messages failed"),
    );
    worker.once("exit", () => this.#drop(worker));
    this.#workers.add(worker);
    return worker;
  }

  #drop(worker: Worker): void {
    this.#workers.delete(worker);
    const place = this.#idle.indexOf(worker);
    if (place !== -1) this.#idle.splice(place, 1);
  }

  #give(worker: Worker, { task, spent, resolve }: WaitingTask): void {
    const { clock } = this.parts;
    const startedAt = clock.monotonic();
    const settle = (judged: JudgedMessage | undefined): void => {
      cancel();
      worker.off("message", settle).off("exit", failed);
      spent(clock.monotonic() - startedAt);
      resolve(judged);
      if (judged) this.#idle.push(worker);
      else this.#drop(worker);
      this.#proceed();
    };
    const failed = (): void => settle(undefined);
    const { message } = task;
    const cancel = clock.after(limitMsOf(message.byteLength), () => {
      failed();
      void worker.terminate();
    });
    worker.once("message", settle).once("exit", failed);
    worker.postMessage(
      task,
      message.byteLength === message.buffer.byteLength ? [message.buffer as ArrayBuffer] : [],
    );
  }
}
