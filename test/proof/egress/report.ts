import type { Contact } from "../../support/egress/egress-sink.js";
import type { Attempt } from "./corpus/attempt.js";
import { notBegun, type Outcome } from "./outcome.js";
import { verdictTable } from "../verdict-table.js";

/** One run of the corpus. */
export interface Part {
  readonly title: string;
  readonly isPlain: boolean;
  readonly outcomes: readonly Outcome[];
  /**
   * What has to be explained: what got out, what is unsure; without a guard, what did not do as the corpus
   * says.
   */
  readonly faults: readonly string[];
  readonly isGood: boolean;
}

export function partOf(
  title: string,
  {
    isPlain,
    outcomes,
    corpus,
  }: { isPlain: boolean; outcomes: readonly Outcome[]; corpus: readonly Attempt[] },
): Part {
  const faults = [
    ...(isPlain
      ? emptyAttempts(outcomes, corpus)
      : outcomes.filter(({ verdict }) => verdict === "escaped" || verdict === "unsure").map(lineOf)),
    ...(outcomes.some(({ note }) => note === notBegun)
      ? ["it was stopped before all attempts had begun"]
      : []),
  ];
  return { title, isPlain, outcomes, faults, isGood: faults.length === 0 };
}

/** Attempts of which the corpus says that they reach a sink where nobody guards it, and that did not. */
function emptyAttempts(outcomes: readonly Outcome[], corpus: readonly Attempt[]): string[] {
  const must = new Set(corpus.filter(({ reachesPlain }) => reachesPlain === true).map(({ name }) => name));
  return outcomes
    .filter(({ name, verdict }) => must.has(name) && verdict !== "escaped" && verdict !== "not tried")
    .map((outcome) => `reached nothing: ${lineOf(outcome)}`);
}

const nameWidth = 72;

/** One row: how long it took, its verdict, the attempt, what arrived. */
export const lineOf = ({ name, verdict, contacts, note, ms }: Outcome): string =>
  `${(ms === undefined ? "" : `${(ms / 1000).toFixed(1)} s`).padStart(7)}  ${verdict.padEnd(9)}  ${name.padEnd(nameWidth)}  ${[summarized(contacts), note].filter(Boolean).join("; ")}`.trimEnd();

function summarized(contacts: readonly Contact[]): string {
  const counts = new Map<string, number>();
  for (const { what, at } of contacts)
    counts.set(`${what} at ${at}`, (counts.get(`${what} at ${at}`) ?? 0) + 1);
  return [...counts]
    .slice(0, 3)
    .map(([text, count]) => (count === 1 ? text : `${count} × ${text}`))
    .join(", ");
}

/** All parts in a table, and below it what has to be explained. */
export function summaryOf(parts: readonly Part[]): string {
  const table = verdictTable(parts, ["held", "escaped", "unsure", "not tried"], verdictOf);
  return [
    "",
    ...table,
    "",
    ...parts.flatMap(({ title, faults }) => faults.map((fault) => `${title}: ${fault}`)),
  ].join("\n");
}

const verdictOf = ({ isPlain, isGood }: Part): string => {
  if (isPlain) return isGood ? "attempts work" : "ATTEMPTS EMPTY";
  return isGood ? "tight" : "NOT TIGHT";
};
