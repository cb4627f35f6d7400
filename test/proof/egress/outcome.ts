import type { Dns } from "../../support/egress/dns-server.js";
import type { MulticastListener } from "../../support/egress/egress-listener.js";
import type { Contact, Sink } from "../../support/egress/egress-sink.js";
import type { Attempt } from "./corpus/attempt.js";
import { allowedZone, deniedZone, type TestNetwork, type BrowserSource } from "./browser-source.js";

/**
 * What became of an attempt: `held`: nothing arrived; `unsure`: nothing did, but nor did the allowed request
 * after it.
 */
export interface Outcome {
  readonly name: string;
  readonly verdict: "held" | "escaped" | "unsure" | "not tried";
  readonly contacts: readonly Contact[];
  /** Why it was not tried, or is unsure. */
  readonly note?: string;
  readonly ms?: number;
}

export interface Proving extends TestNetwork {
  readonly source: BrowserSource;
  /** Absent where names cannot be made. */
  readonly dns: readonly Dns[];
  /** Absent where the network is shared with others. */
  readonly multicast?: MulticastListener;
  /** A browser without a guard, out of which attempts have to get. */
  readonly isPlain: boolean;
  /**
   * How many names each server had been asked for before this corpus, by browsers without a guard perhaps.
   */
  readonly askedBefore?: readonly number[];
  /** No further attempt is begun. */
  readonly signal: AbortSignal;
  onOutcome?(outcome: Outcome): void;
}

/** The note of an attempt that a signal came before. */
export const notBegun = "not begun";
/** One attempt that is under way or over. What comes to its sink until all are over is its. */
export interface Tried {
  readonly attempt: Attempt;
  readonly sink: Sink;
  readonly nonce: string;
  /** What ended it early, if anything did. */
  error?: string;
  /** Why nothing can be said of it. */
  unsure?: string;
  /** How long it took, the allowed request after it included. */
  ms?: number;
}

/** The last of several tries counts, unless one before got out. */
export function outcomesOf(tried: readonly Tried[], proving: Proving): ReadonlyMap<Attempt, Outcome> {
  const outcomes = new Map<Attempt, Outcome>();
  for (const each of tried) {
    if (outcomes.get(each.attempt)?.verdict !== "escaped")
      outcomes.set(each.attempt, outcomeOf(each, proving));
  }
  return outcomes;
}

export function outcomeOf(tried: Tried, proving: Proving): Outcome {
  return { ...judged(tried, proving), ...(tried.ms !== undefined && { ms: tried.ms }) };
}

function judged({ attempt: { name }, sink, nonce, error, unsure }: Tried, proving: Proving): Outcome {
  const contacts = [
    ...sink.contacts,
    ...asked(nonce, proving).map((query) => ({ what: `dns ${query}`, at: "name server" })),
  ];
  if (contacts.length > 0) return { name, verdict: "escaped", contacts };
  if (unsure !== undefined) return { name, verdict: "unsure", contacts, note: unsure };
  return { name, verdict: "held", contacts, ...(error !== undefined && { note: error }) };
}

/** Questions for names of the attempt that nobody may resolve. */
export const asked = (nonce: string, { dns, multicast }: Proving): readonly string[] => [
  ...dns.flatMap(({ queries }) =>
    queries.filter((query) => query.includes(nonce) && !query.endsWith(allowedZone)),
  ),
  ...(multicast?.heard.some((text) => text.includes(nonce)) ? ["of everybody in the network"] : []),
];

/** What no sink can see: packets for the world outside, and questions for names of others. */
export async function elsewhere(
  { world, dns, isPlain }: Proving,
  before: { packets: number; asked: readonly number[] },
): Promise<readonly Outcome[]> {
  if (isPlain) return [];
  const sent = world.countPackets ? (await world.countPackets()) - before.packets : undefined;
  const strange = dns.flatMap(({ queries }, at) =>
    queries
      .slice(before.asked[at])
      .filter((query) => !query.endsWith(allowedZone) && !query.endsWith(deniedZone)),
  );
  const contacts = [
    ...(sent ? [{ what: `${sent} packets`, at: "the way out of the machine" }] : []),
    ...strange.map((query) => ({ what: `dns ${query}`, at: "name server" })),
  ];
  if (sent === undefined) return [];
  return [
    {
      name: "all of them: anything for anywhere else",
      verdict: contacts.length > 0 ? "escaped" : "held",
      contacts,
    },
  ];
}
