import { randomBytes } from "node:crypto";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import type { Dns } from "../../support/egress/dns-server.js";
import type { MulticastEar } from "../../support/egress/egress-listener.js";
import { type Contact, openSink, type Sink } from "../../support/egress/egress-sink.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { until } from "../../support/browser/chromium-until.js";
import type { Attempt, Need } from "./corpus/attempt.js";
import { Page } from "./corpus/page.js";
import { nameHosts, workOf } from "./corpus/work.js";
import { allowedZone, deniedZone, type Door, type Ground, type House, type Reach } from "./door.js";

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
}

export interface Proving extends Ground {
  readonly house: House;
  /** Absent where names cannot be made. */
  readonly dns: readonly Dns[];
  /** Absent where the network is shared with others. */
  readonly ear?: MulticastEar;
  /** Waits for contacts instead of for the allowed request after the attempt: a browser without a guard. */
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
const parallel = 4;
const attemptLimitMs = 12_000;
const markerLimitMs = 10_000;

/** One attempt that is under way or over. What comes to its sink until all are over is its. */
interface Tried {
  readonly attempt: Attempt;
  readonly sink: Sink;
  readonly nonce: string;
  /** What ended it early, if anything did. */
  error?: string;
  /** Why nothing can be said of it. */
  unsure?: string;
}

export async function runCorpus(corpus: readonly Attempt[], given: Proving): Promise<readonly Outcome[]> {
  const before = {
    packets: (await given.world.countPackets?.()) ?? 0,
    asked: given.dns.map(({ queries }) => queries.length),
  };
  const proving = { ...given, askedBefore: before.asked };
  const skipped = new Map<Attempt, Need>();
  for (const attempt of corpus) {
    const lacking = attempt.needs?.find((need) => !has(need, proving));
    if (lacking) skipped.set(attempt, lacking);
  }
  const wanted = corpus.filter((attempt) => !skipped.has(attempt));
  const tried: Tried[] = [];
  try {
    for (const [reach, attempts] of grouped(wanted)) await shareDoor(reach, attempts, { proving, tried });
    const outcomes = outcomesOf(tried, proving);
    const notTried = (attempt: Attempt): Outcome => {
      const need = skipped.get(attempt);
      return {
        name: attempt.name,
        verdict: "not tried",
        contacts: [],
        note: need === undefined ? notBegun : `needs ${need}`,
      };
    };
    return [
      ...corpus.map((attempt) => outcomes.get(attempt) ?? notTried(attempt)),
      ...(await elsewhere(proving, before)),
    ];
  } finally {
    await Promise.all(tried.map(({ sink }) => sink.close()));
  }
}

/** Of two tries the second counts, unless the first got out. */
function outcomesOf(tried: readonly Tried[], proving: Proving): ReadonlyMap<Attempt, Outcome> {
  const outcomes = new Map<Attempt, Outcome>();
  for (const each of tried) {
    if (outcomes.get(each.attempt)?.verdict !== "escaped")
      outcomes.set(each.attempt, outcomeOf(each, proving));
  }
  return outcomes;
}

/** Attempts that may share a browser. */
function grouped(attempts: readonly Attempt[]): readonly (readonly [Reach, readonly Attempt[]])[] {
  const reachOf = ({ needs, leavesProxy }: Attempt): Reach =>
    needs?.includes("own-ports") ? "opened" : leavesProxy ? "proxied" : "listed";
  const shared = attempts.filter(({ isAlone }) => !isAlone);
  const groups = (["listed", "proxied", "opened"] as const).map(
    (reach) => [reach, shared.filter((attempt) => reachOf(attempt) === reach)] as const,
  );
  return [
    ...groups,
    ...attempts.filter(({ isAlone }) => isAlone).map((attempt) => [reachOf(attempt), [attempt]] as const),
  ];
}

function has(need: Need, { house, world, dns }: Proving): boolean {
  if (need === "chromium") return house.engine === "chromium";
  if (need === "names") return dns.length > 0;
  if (need === "uploads") return house.hasUploads;
  if (need === "own-ports") return house.hasOwnPorts;
  return need === "privileged-cdp" || world[need] !== undefined;
}

function outcomeOf({ attempt: { name }, sink, nonce, error, unsure }: Tried, proving: Proving): Outcome {
  const contacts = [
    ...sink.contacts,
    ...asked(nonce, proving).map((query) => ({ what: `dns ${query}`, at: "name server" })),
  ];
  if (contacts.length > 0) return { name, verdict: "escaped", contacts };
  if (unsure !== undefined) return { name, verdict: "unsure", contacts, note: unsure };
  return { name, verdict: "held", contacts, ...(error !== undefined && { note: error }) };
}

/** Questions for names of the attempt that nobody may resolve. */
const asked = (nonce: string, { dns, ear }: Proving): readonly string[] => [
  ...dns.flatMap(({ queries }) =>
    queries.filter((query) => query.includes(nonce) && !query.endsWith(allowedZone)),
  ),
  ...(ear?.heard.some((text) => text.includes(nonce)) ? ["of everybody in the network"] : []),
];

/** What no sink can see: packets for the world outside, and questions for names of others. */
async function elsewhere(
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

async function shareDoor(
  reach: Reach,
  attempts: readonly Attempt[],
  { proving, tried }: { proving: Proving; tried: Tried[] },
): Promise<void> {
  if (attempts.length === 0 || proving.signal.aborted) return;
  const doors = [await proving.house.open(reach)];
  // An attempt may take the browser with it, others' too: whatever is unsure is tried once more, on another
  // one.
  const renew = async (broken: Door | undefined): Promise<void> => {
    if (doors.at(-1) === broken) doors.push(await proving.house.open(reach));
  };
  const left = attempts.map((attempt) => ({ attempt, isLast: false }));
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next && !proving.signal.aborted; next = left.shift()) {
      const each: Tried = {
        attempt: next.attempt,
        sink: await openSink(),
        nonce: `n${randomBytes(6).toString("hex")}`,
      };
      const door = doors.at(-1);
      tried.push(each);
      if (door)
        await tryOne(each, door, { ...proving, sinks: tried.map(({ sink }) => sink.port) }).catch(
          (error: Error) => (each.unsure = error.message),
        );
      const outcome = outcomeOf(each, proving);
      if (outcome.verdict !== "unsure" || next.isLast) {
        proving.onOutcome?.(outcome);
        continue;
      }
      left.push({ attempt: next.attempt, isLast: true });
      await renew(door);
    }
  };
  try {
    // Whose ports are Remuda's can be told while no sink is just being opened.
    await Promise.all(Array.from({ length: reach === "opened" ? 1 : parallel }, work));
  } finally {
    await Promise.all(doors.map((door) => door.close()));
  }
}

async function tryOne(
  tried: Tried,
  door: Door,
  proving: Proving & { readonly sinks: readonly number[] },
): Promise<void> {
  const { attempt, sink, nonce } = tried;
  nameHosts(nonce, proving);
  const cdp = await connectRaw(door.cdpUrl);
  const opened: Page[] = [];
  try {
    const work = workOf({
      nonce,
      sink,
      ground: proving,
      dns: proving.dns,
      askedBefore: proving.askedBefore ?? [],
      door,
      cdp,
      opened,
      ownPorts: (await proving.house.ownPorts()).filter((port) => !proving.sinks.includes(port)),
    });
    const limit = { what: attempt.name, limitMs: attemptLimitMs };
    const isOver = cdp.closed.then(() => {
      throw new Error("the connection was closed");
    });
    await within(systemClock, limit, Promise.race([attempt.run(work), isOver])).catch(
      (error: Error) => (tried.error = error.message),
    );
    if (proving.isPlain)
      await until(
        "a contact",
        () => sink.contacts.length > 0 || asked(nonce, proving).length > 0,
        3000,
      ).catch(() => {});
    else await mark(door, proving, nonce).catch((error: Error) => (tried.unsure = error.message));
  } finally {
    await within(systemClock, { what: "closing pages", limitMs: 3000 }, closePages(cdp, opened)).catch(
      () => {},
    );
    cdp.socket.close();
  }
}

/** Those of the attempt, and what they have opened. */
async function closePages(cdp: RawCdp, opened: readonly Page[]): Promise<void> {
  const { result } = await cdp.send("Target.getTargets");
  const ours = new Set(opened.map(({ target }) => target));
  const infos = (result?.targetInfos ?? []) as { targetId: string; openerId?: string }[];
  const left = infos.filter(
    ({ targetId, openerId }) => ours.has(targetId) || (openerId !== undefined && ours.has(openerId)),
  );
  await Promise.all(left.map(({ targetId }) => cdp.send("Target.closeTarget", { targetId })));
}

/** The browser still works, and what it was to send is sent: an allowed request that begins now arrives. */
async function mark(door: Door, { site }: Proving, nonce: string): Promise<void> {
  const cdp = await connectRaw(door.cdpUrl);
  try {
    const limit = { what: "the allowed request after the attempt", limitMs: markerLimitMs };
    const [page] = await within(
      systemClock,
      limit,
      Promise.all([Page.open(cdp, `${site.origin}/marker/${nonce}`), site.heard(`/marker/${nonce}`)]),
    );
    await cdp.send("Target.closeTarget", { targetId: page.target });
  } finally {
    cdp.socket.close();
  }
}
