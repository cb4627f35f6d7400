import { randomBytes } from "node:crypto";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import { openSink } from "../../support/egress/egress-sink.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { until } from "../../support/browser/chromium-until.js";
import type { Attempt, Need, Work } from "./corpus/attempt.js";
import type { Page } from "./corpus/page.js";
import { nameHosts, workOf } from "./corpus/work.js";
import type { ClientAccess, Reach } from "./browser-source.js";
import {
  asked,
  elsewhere,
  notBegun,
  type Outcome,
  outcomeOf,
  outcomesOf,
  type Proving,
  type Tried,
} from "./outcome.js";

const parallel = 4;
/** So many attempts that have a browser of their own run beside the others. */
const parallelAlone = 2;
/** What is unsure is tried so often again. */
const moreTries = 2;
/** An attempt ends by itself: only what hangs takes so long. */
const attemptLimitMs = 90_000;
/** A control ends with what it has got out: only one that fails takes so long, and is begun once more. */
const controlLimitMs = 120_000;
const markerLimitMs = 10_000;

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
    const { together, apart, last } = grouped(wanted, proving);
    const trying = { proving, tried };
    await Promise.all([shareAccesses(together, trying), ...lanesOf(apart, trying)]);
    // Which ports are Remuda's can be told while no sink is just being opened.
    await shareAccesses(last, trying);
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

type Group = readonly [Reach, readonly Attempt[]];

/** Attempts that share a browser, those that have one each, and those that wait for all others. */
function grouped(
  attempts: readonly Attempt[],
  { isPlain }: Proving,
): {
  readonly together: readonly Group[];
  readonly apart: readonly Group[];
  readonly last: readonly Group[];
} {
  const reachOf = ({ needs, leavesProxy }: Attempt): Reach => {
    if (needs?.includes("own-ports")) return "opened";
    // Behind a guard both are the same.
    return leavesProxy && isPlain ? "proxied" : "listed";
  };
  const shared = (reach: Reach): Group => [
    reach,
    attempts.filter((attempt) => !attempt.isAlone && reachOf(attempt) === reach),
  ];
  const alone = attempts.filter(({ isAlone }) => isAlone);
  const nameOf = ({ name, isAlone }: Attempt): string => (typeof isAlone === "string" ? isAlone : name);
  const groupOf = (name: string): Group => {
    const members = alone.filter((attempt) => nameOf(attempt) === name);
    return [members[0] ? reachOf(members[0]) : "listed", members];
  };
  const namesOf = (members: readonly Attempt[]): readonly string[] => [...new Set(members.map(nameOf))];
  return {
    together: [shared("listed"), shared("proxied")],
    apart: namesOf(alone.filter(({ isLast }) => !isLast)).map(groupOf),
    last: [shared("opened"), ...namesOf(alone.filter(({ isLast }) => isLast)).map(groupOf)],
  };
}

interface Trying {
  readonly proving: Proving;
  readonly tried: Tried[];
  /** No further try follows. */
  readonly isLast?: boolean;
}

async function shareAccesses(groups: readonly Group[], trying: Trying): Promise<void> {
  for (const [reach, attempts] of groups) await shareAccess(reach, attempts, trying);
}

/** Several at once, each in a browser of its own. */
function lanesOf(groups: readonly Group[], trying: Trying): Promise<void>[] {
  const left = [...groups];
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next; next = left.shift()) await shareAccesses([next], trying);
  };
  return Array.from({ length: parallelAlone }, work);
}

function has(need: Need, { source, world, dns }: Proving): boolean {
  if (need === "chromium") return source.engine === "chromium";
  if (need === "names") return dns.length > 0;
  if (need === "uploads") return source.hasUploads;
  if (need === "own-ports") return source.hasOwnPorts;
  if (need === "bidi") return source.hasBidi;
  return need === "privileged-cdp" || world[need] !== undefined;
}

/**
 * Several at once in one browser. One that ends the browser, as some of headless-shell beneath BiDi do, takes
 * others' attempts with it: what is unsure is tried again at the end, in browsers of its own.
 */
async function shareAccess(reach: Reach, attempts: readonly Attempt[], trying: Trying): Promise<void> {
  const { source, signal } = trying.proving;
  if (attempts.length === 0 || signal.aborted) return;
  const accesses = [await source.open(reach)];
  const renew = async (broken: ClientAccess): Promise<void> => {
    if (accesses.at(-1) === broken) accesses.push(await source.open(reach));
  };
  const left = [...attempts];
  const unsure: Attempt[] = [];
  const lane = async (): Promise<void> => {
    for (let next = left.shift(); next && !signal.aborted; next = left.shift()) {
      const access = accesses.at(-1);
      if (!access || !(await needsAnother(next, access, trying))) continue;
      unsure.push(next);
      await renew(access);
    }
  };
  const isOneByOne = reach === "opened" || attempts[0]?.isAlone !== undefined;
  try {
    await Promise.all(Array.from({ length: isOneByOne ? 1 : parallel }, lane));
  } finally {
    await Promise.all(accesses.map((access) => access.close()));
  }
  for (const attempt of unsure) await tryAgain(reach, attempt, trying);
}

async function tryAgain(reach: Reach, attempt: Attempt, trying: Trying): Promise<void> {
  for (let tries = 1; tries <= moreTries && !trying.proving.signal.aborted; tries += 1)
    if (!(await needsAnotherAlone(reach, attempt, { ...trying, isLast: tries === moreTries }))) return;
}

async function needsAnotherAlone(reach: Reach, attempt: Attempt, trying: Trying): Promise<boolean> {
  const access = await trying.proving.source.open(reach);
  try {
    return await needsAnother(attempt, access, trying);
  } finally {
    await access.close();
  }
}

/** Tries it; true where it is unsure, or a control that failed, unless that was the last try. */
async function needsAnother(
  attempt: Attempt,
  access: ClientAccess,
  { proving, tried, isLast = false }: Trying,
): Promise<boolean> {
  const each: Tried = { attempt, sink: await openSink(), nonce: `n${randomBytes(6).toString("hex")}` };
  tried.push(each);
  const startedAt = performance.now();
  await tryOne(each, access, { ...proving, sinks: tried.map(({ sink }) => sink.port) }).catch(
    (error: Error) => (each.unsure = error.message),
  );
  each.ms = Math.round(performance.now() - startedAt);
  const outcome = outcomeOf(each, proving);
  const { verdict } = outcome;
  const isOver = verdict !== "unsure" && !(verdict === "held" && isControl(attempt, proving));
  if (isOver || isLast) proving.onOutcome?.(outcome);
  return !isOver;
}

/** Does the attempt have to get out there? */
const isControl = ({ reachesPlain }: Attempt, { isPlain }: Proving): boolean =>
  isPlain && reachesPlain === true;

async function tryOne(
  tried: Tried,
  access: ClientAccess,
  proving: Proving & { readonly sinks: readonly number[] },
): Promise<void> {
  const { attempt, sink, nonce } = tried;
  nameHosts(nonce, proving);
  const cdp = await connectRaw(access.cdpUrl);
  const opened: Page[] = [];
  try {
    const work = workOf({
      nonce,
      sink,
      network: proving,
      dns: proving.dns,
      askedBefore: proving.askedBefore ?? [],
      access,
      cdp,
      opened,
      ownPorts: (await proving.source.ownPorts()).filter((port) => !proving.sinks.includes(port)),
      shows: showsIn(tried, access, proving),
    });
    const isOver = cdp.closed.then(() => {
      throw new Error("the connection was closed");
    });
    const run = Promise.race([attempt.run(work), isOver]);
    if (isControl(attempt, proving)) await getOut(run, tried, proving);
    else await runBefore(run, tried, () => mark(access, proving, nonce));
  } finally {
    await within(systemClock, { what: "closing pages", limitMs: 3000 }, closePages(cdp, opened)).catch(
      () => {},
    );
    cdp.socket.close();
  }
}

/** Waits until something has arrived: what the attempt still does then changes nothing. */
async function getOut(run: Promise<unknown>, tried: Tried, proving: Proving): Promise<void> {
  run.catch((error: Error) => (tried.error = error.message));
  const hasArrived = (): boolean => tried.sink.contacts.length > 0 || asked(tried.nonce, proving).length > 0;
  await until("a contact", hasArrived, controlLimitMs).catch(() => {});
}

/** Waits until the attempt is over, and then until an allowed request has arrived that began after it. */
async function runBefore(run: Promise<unknown>, tried: Tried, markAfter: () => Promise<void>): Promise<void> {
  const limit = { what: tried.attempt.name, limitMs: attemptLimitMs };
  await within(systemClock, limit, run).catch((error: Error) => (tried.error = error.message));
  await markAfter().catch((error: Error) => (tried.unsure = error.message));
}

const showsIn =
  ({ attempt, nonce }: Tried, access: ClientAccess, proving: Proving): Work["shows"] =>
  async (holds) => {
    if (isControl(attempt, proving))
      return await until("what it is after", holds, controlLimitMs).catch(() => false);
    await mark(access, proving, `shows-${nonce}`).catch(() => {});
    return await holds();
  };

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
async function mark(access: ClientAccess, { site }: Proving, nonce: string): Promise<void> {
  const cdp = await connectRaw(access.cdpUrl);
  try {
    const limit = { what: "the allowed request after the attempt", limitMs: markerLimitMs };
    // A tab asks for its page at once; a window of its own would be most of what an attempt costs.
    const opened = cdp.send("Target.createTarget", {
      url: `${site.origin}/marker/${nonce}`,
      background: true,
    });
    const [{ result }] = await within(
      systemClock,
      limit,
      Promise.all([opened, site.heard(`/marker/${nonce}`)]),
    );
    await cdp.send("Target.closeTarget", { targetId: result?.targetId });
  } finally {
    cdp.socket.close();
  }
}
