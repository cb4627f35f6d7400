import type { Attempt } from "./corpus/attempt.js";
import type { BrowserSource } from "./browser-source.js";
import type { Site } from "./site.js";

/**
 * What became of an attempt. `held`: it got nothing; `admitted`: it got what the pages of the repository
 * admit; `unsure`: nor can it be said that it was really tried.
 */
export interface Outcome {
  readonly name: string;
  readonly vector: Attempt["vector"];
  readonly verdict: "held" | "leaked" | "admitted" | "unsure" | "not tried";
  /** What it got. */
  readonly leaks: readonly string[];
  /** Why it is unsure or was not tried. */
  readonly note?: string;
  readonly ms?: number;
}

export interface Proving {
  readonly source: BrowserSource;
  readonly site: Site;
  /** No further attempt is begun. */
  readonly signal: AbortSignal;
  onOutcome?(outcome: Outcome): void;
}

/** The note of an attempt that a signal came before. */
export const notBegun = "not begun";

export type Tell = (attempt: Attempt, outcome: Outcome) => void;
