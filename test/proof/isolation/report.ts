import type { Attempt } from "./corpus/attempt.js";
import { notBegun, type Outcome } from "./outcome.js";
import { verdictTable } from "../verdict-table.js";

/** One run of the corpus: one engine in one tier, or without a wall. */
export interface Part {
  readonly title: string;
  /** Set where there is no wall, so that attempts have to succeed. */
  readonly isPlain: boolean;
  /** Set where nothing was tried, since it is not to be had here. */
  readonly isAbsent?: true;
  readonly outcomes: readonly Outcome[];
  /**
   * What has to be explained: what leaked, what is unsure; without a wall, what did not do as the corpus
   * says.
   */
  readonly faults: readonly string[];
  /** What is no fault and has to be known: that there is no such run here, or what is promised in it. */
  readonly notes: readonly string[];
  readonly isGood: boolean;
}

interface Ran {
  readonly isPlain: boolean;
  readonly outcomes: readonly Outcome[];
  readonly corpus: readonly Attempt[];
  readonly hasRoot: boolean;
  readonly notes?: readonly string[];
}

export function partOf(title: string, { isPlain, outcomes, corpus, hasRoot, notes = [] }: Ran): Part {
  const faults = [
    ...(isPlain
      ? failedControls(outcomes, corpus, hasRoot)
      : outcomes.filter(({ verdict }) => verdict === "leaked" || verdict === "unsure").map(lineOf)),
    ...(outcomes.some(({ note }) => note === notBegun)
      ? ["it was stopped before all attempts had begun"]
      : []),
  ];
  const admitted = outcomes
    .filter(({ verdict }) => verdict === "admitted")
    .map(({ name, note }) => `admitted: ${name}; ${note}`);
  return { title, isPlain, outcomes, faults, notes: [...notes, ...admitted], isGood: faults.length === 0 };
}

/** Attempts of which the corpus says that they succeed without a wall, and that did not. */
function failedControls(
  outcomes: readonly Outcome[],
  corpus: readonly Attempt[],
  hasRoot: boolean,
): string[] {
  const must = new Set(
    corpus
      .filter(({ succeedsPlain }) => succeedsPlain === true || (hasRoot && succeedsPlain === "as root"))
      .map(({ name }) => name),
  );
  return outcomes
    .filter(({ name, verdict }) => must.has(name) && verdict !== "leaked" && verdict !== "not tried")
    .map((outcome) => `control failed: ${lineOf(outcome)}`);
}

const nameWidth = 74;
const leaksShown = 4;

/** One row: how one came in, the attempt, its verdict, what it got. */
export const lineOf = ({ name, vector, verdict, leaks, note, ms }: Outcome): string =>
  `${(ms === undefined ? "" : `${(ms / 1000).toFixed(1)} s`).padStart(7)}  ${verdict.padEnd(9)}  ${vector.padEnd(9)}  ${name.padEnd(nameWidth)}  ${[listed(leaks), note].filter(Boolean).join("; ")}`.trimEnd();

const listed = (leaks: readonly string[]): string =>
  [
    ...leaks.slice(0, leaksShown),
    ...(leaks.length > leaksShown ? [`and ${leaks.length - leaksShown} more`] : []),
  ].join(", ");

/** All parts in a table, below it what has to be explained, and in the last line whether everything holds. */
export function summaryOf(parts: readonly Part[]): string {
  const table = verdictTable(parts, ["held", "admitted", "leaked", "unsure", "not tried"], verdictOf);
  const explained = parts.flatMap(({ title, faults, notes }) =>
    [...notes, ...faults].map((text) => `${title}: ${text}`),
  );
  return ["", ...table, "", ...explained, closingLine(parts)].join("\n");
}

function closingLine(parts: readonly Part[]): string {
  if (parts.every(({ isGood }) => isGood)) return "tight";
  const absent = parts.filter(({ isAbsent }) => isAbsent).map(({ title }) => title);
  if (parts.every(({ isGood, isAbsent }) => isGood || isAbsent)) return `NOT PROVED: ${absent.join(", ")}`;
  const leaked = parts
    .filter(({ isPlain }) => !isPlain)
    .flatMap(({ outcomes }) =>
      outcomes.filter(({ verdict }) => verdict === "leaked").map(({ name }) => name),
    );
  return `NOT TIGHT: ${[...new Set(leaked)].join("; ") || "see above"}`;
}

const verdictOf = ({ isPlain, isAbsent, isGood, outcomes }: Part): string => {
  if (isAbsent) return "NOT PROVED";
  if (outcomes.length === 0) return isGood ? "tight" : "COULD NOT BE RUN";
  if (isPlain) return isGood ? "attempts work" : "CONTROL FAILED";
  return isGood ? "tight" : "NOT TIGHT";
};
