import { closeSync, opendirSync, openSync, readSync } from "node:fs";
import { yieldTurn } from "../../base/yield-turn.js";

/** Some 1 ms of an idle processor. */
const callsInTurn = 256;
/** The kernel writes as much of a text as costs about one other call. */
const bytesOfCall = 1024;
const buffer = Buffer.alloc(65_536);
/** Four times as long as a path of 4,096 bytes with each of them escaped. */
const longestLine = 65_536;

/**
 * Looks at what the processes of one browser have, by system calls that are counted: a hostile program has as
 * many descriptors, mappings and mounts as it can make. Beyond `calls` the look is over and finds nothing
 * more. Each call is synchronous, since a job in the thread pool would cost ten times as much, and others
 * have their turn of the event loop in between.
 */
export class BoundedLook {
  #inTurn = 0;
  #left: number;

  constructor(calls: number) {
    this.#left = calls;
  }

  /** True where there was more to look at than the look may cost. */
  get isOver(): boolean {
    return this.#left < 0;
  }

  /** Undefined for what has gone, for what this process may not see, and where the look is over. */
  async ask<Found>(call: () => Found): Promise<Found | undefined> {
    return (await this.#spend(1)) ? given(call) : undefined;
  }

  /** Gives the names in a directory as they are read. */
  async *names(path: string): AsyncGenerator<string, void> {
    const directory = await this.ask(() => opendirSync(path));
    if (directory === undefined) return;
    try {
      let entry = await this.ask(() => directory.readSync());
      for (; entry; entry = await this.ask(() => directory.readSync())) yield entry.name;
    } finally {
      directory.closeSync();
    }
  }

  /** Gives the lines of a file that the kernel writes as they are read, as far as the look goes. */
  async *lines(path: string): AsyncGenerator<string, void> {
    let begun = "";
    for await (const part of this.#parts(path)) {
      const whole = (begun + part).split("\n");
      begun = whole.pop() ?? "";
      for (const line of whole) yield line;
      // What a longer one says is not known, as if it lay beyond the look.
      if (begun.length > longestLine) this.#left = -1;
    }
    if (begun !== "" && !this.isOver) yield begun;
  }

  async *#parts(path: string): AsyncGenerator<string, void> {
    const file = await this.ask(() => openSync(path, "r"));
    if (file === undefined) return;
    try {
      let part = readPart(file);
      for (; part !== "" && (await this.#spend(part.length / bytesOfCall)); part = readPart(file)) yield part;
    } finally {
      closeSync(file);
    }
  }

  /** False where the look is over. */
  async #spend(calls: number): Promise<boolean> {
    if (this.isOver) return false;
    this.#left -= calls;
    this.#inTurn += calls;
    if (this.#inTurn >= callsInTurn) {
      this.#inTurn = 0;
      await yieldTurn();
    }
    return !this.isOver;
  }
}

const readPart = (file: number): string =>
  buffer.toString("latin1", 0, given(() => readSync(file, buffer)) ?? 0);

/** Undefined for what has gone, and for what this process may not see. */
export function given<Found>(look: () => Found): Found | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
