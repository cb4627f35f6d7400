import type { Clock, Millis } from "../base/clock.js";
import { TimeLimitReached, untilAborted } from "../base/deadline.js";
import { textOf } from "../base/log.js";
import { Stops } from "../base/stops.js";
import type { KeptWorkspace } from "./chromium.js";
import type { Workspace } from "./workspace.js";

/** The stages of a launch; a failure names the stage that the launch had come to. */
export type LaunchStage =
  | "preparing"
  | "assets"
  | "display"
  | "spawn"
  | "answer"
  | "page"
  | "extensions"
  | "egress"
  | "ready";

export class LaunchFailed extends Error {
  constructor(
    readonly stage: LaunchStage,
    readonly lastLines: readonly string[],
    cause: unknown,
  ) {
    super(`Chromium failed to launch (${stage}): ${textOf(cause)}`, { cause });
    this.name = "LaunchFailed";
  }
}

export interface LaunchOptions {
  /** Gives the launch up. What it had made is removed before the launch throws. */
  readonly signal?: AbortSignal;
  readonly onStage?: (stage: LaunchStage) => void;
  /**
   * Starts again what has ended, in its directories and as its uid; where the launch fails, they stay the
   * caller's.
   */
  readonly adopt?: KeptWorkspace;
}

const stopLimitMs = 15_000;

/** One launch under way: its stage, what ends it early, and what it has made so far. */
export class LaunchAttempt {
  readonly stops: Stops;
  readonly #halt = new AbortController();
  readonly #unlisten: () => void;
  #owned: Workspace | undefined;
  #stage: LaunchStage = "preparing";

  constructor(
    clock: Clock,
    limitMs: Millis,
    private readonly options: LaunchOptions,
  ) {
    this.stops = new Stops(clock, stopLimitMs);
    const cancel = clock.after(limitMs, () => this.halt(new TimeLimitReached("launching Chromium", limitMs)));
    const abort = (): void => this.halt(new Error("the launch was given up"));
    options.signal?.addEventListener("abort", abort);
    if (options.signal?.aborted) abort();
    this.#unlisten = () => {
      cancel();
      options.signal?.removeEventListener("abort", abort);
    };
  }

  /** The workspace of the browser that is started again, if any. */
  get adopted(): Workspace | undefined {
    return this.options.adopt;
  }

  /** Takes note of what was taken for the browser: it is given back where the launch fails. */
  own(workspace: Workspace): Workspace {
    this.#owned = workspace;
    return workspace;
  }

  /**
   * Ends all that the launch has started, and then gives back what it has taken. Throws where something is
   * left; it may be called again.
   */
  async clear(): Promise<void> {
    await this.stops.runAgain();
    await this.#owned?.discard();
  }

  get stage(): LaunchStage {
    return this.#stage;
  }

  get halted(): AbortSignal {
    return this.#halt.signal;
  }

  /** Ends the attempt at whatever it waits for. The first reason counts. */
  halt(reason: Error): void {
    this.#halt.abort(reason);
  }

  enter(stage: LaunchStage): void {
    this.halted.throwIfAborted();
    this.#stage = stage;
    this.options.onStage?.(stage);
  }

  /** Waits for something that may never come. */
  untilHalted<T>(work: Promise<T>): Promise<T> {
    return untilAborted(this.halted, work);
  }

  /** After this call neither the attempt's limit nor its signal ends it. */
  finish(): void {
    this.#unlisten();
  }
}
