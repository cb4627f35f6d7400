import { randomBytes } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import type { Attempt, ClientAttempt, ProcessAttempt } from "./corpus/attempt.js";
import { textsIn } from "./corpus/attempt.js";
import type { Browser, Ground, House } from "./house.js";
import { intrude, type Place, type Told } from "./intrude.js";
import type { Site } from "./site.js";
import { openWork } from "./work.js";

/**
 * What became of an attempt. `held`: it got nothing; `admitted`: it got what the pages of the repository
 * admit; `unsure`: nor can it be said that it was really tried.
 */
export interface Outcome {
  readonly name: string;
  readonly door: Attempt["door"];
  readonly verdict: "held" | "leaked" | "admitted" | "unsure" | "not tried";
  /** What it got. */
  readonly leaks: readonly string[];
  /** Why it is unsure or was not tried. */
  readonly note?: string;
  readonly ms?: number;
}

export interface Proving {
  readonly house: House;
  readonly site: Site;
  /** No further attempt is begun. */
  readonly signal: AbortSignal;
  onOutcome?(outcome: Outcome): void;
}

const attemptLimitMs = 25_000;
const parallel = 3;

export async function runCorpus(corpus: readonly Attempt[], proving: Proving): Promise<readonly Outcome[]> {
  const outcomes = new Map<Attempt, Outcome>();
  const { house, signal } = proving;
  const tell = (attempt: Attempt, given: Outcome): void => {
    const outcome = house.isPlain ? given : admitted(attempt, given);
    outcomes.set(attempt, outcome);
    proving.onOutcome?.(outcome);
  };
  const wanted = corpus.filter(
    ({ needsChromium, needsHeadless }) =>
      (!needsChromium || house.kind.engine === "chromium") && (!needsHeadless || house.kind.headless),
  );
  const shared = wanted.filter(({ isAlone }) => !isAlone);
  await withBrowser(house, async (browser) => {
    await tryTogether(shared.filter(isProcess), { ...proving, browser }, tell);
    await tryEach(shared.filter(isClient), { proving, tell, browser });
  });
  await tryApart(
    wanted.filter(isClient).filter(({ isAlone }) => isAlone),
    { proving, tell },
  );
  for (const attempt of wanted.filter(isProcess).filter(({ isAlone }) => isAlone)) {
    if (!signal.aborted)
      await withBrowser(house, (browser) => tryTogether([attempt], { ...proving, browser }, tell));
  }
  return corpus.map(
    (attempt) =>
      outcomes.get(attempt) ?? {
        name: attempt.name,
        door: attempt.door,
        verdict: "not tried",
        leaks: [],
        note: wanted.includes(attempt) ? notBegun : "of another kind of browser",
      },
  );
}

const admitted = ({ isAdmitted }: Attempt, outcome: Outcome): Outcome =>
  outcome.verdict === "leaked" && isAdmitted !== undefined
    ? { ...outcome, verdict: "admitted", note: isAdmitted }
    : outcome;

export const notBegun = "not begun";
const isProcess = (attempt: Attempt): attempt is ProcessAttempt => attempt.door === "process";
const isClient = (attempt: Attempt): attempt is ClientAttempt => attempt.door !== "process";

async function withBrowser(house: House, work: (browser: Browser) => Promise<unknown>): Promise<void> {
  const browser = await house.open();
  try {
    await work(browser);
  } finally {
    await browser.close();
  }
}

type Tell = (attempt: Attempt, outcome: Outcome) => void;

interface Trying {
  readonly proving: Proving;
  readonly tell: Tell;
}

/** Each in a browser of its own, and those of one name in one. */
async function tryApart(attempts: readonly ClientAttempt[], trying: Trying): Promise<void> {
  const {
    proving: { house, signal },
  } = trying;
  const nameOf = ({ name, isAlone }: ClientAttempt): string => (typeof isAlone === "string" ? isAlone : name);
  const left = [...new Set(attempts.map(nameOf))].map((group) =>
    attempts.filter((attempt) => nameOf(attempt) === group),
  );
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next && !signal.aborted; next = left.shift()) {
      const together = next;
      if (together.length === 1) await tryEach(together, trying);
      else await withBrowser(house, (browser) => tryEach(together, { ...trying, browser }));
    }
  };
  await Promise.all(Array.from({ length: parallel }, work));
}

/** One after the other in a browser that they share; without one each gets its own. */
async function tryEach(
  attempts: readonly ClientAttempt[],
  { proving, tell, browser }: Trying & { readonly browser?: Browser },
): Promise<void> {
  for (const attempt of attempts) {
    if (proving.signal.aborted) return;
    const startedAt = performance.now();
    const outcome = browser ? await tryClient(attempt, browser, proving) : await tryAlone(attempt, proving);
    const last = needsAnother(outcome, attempt, proving.house) ? await tryAlone(attempt, proving) : outcome;
    tell(attempt, { ...last, ms: Math.round(performance.now() - startedAt) });
  }
}

/**
 * What took a browser with it, or found it gone; and a control that a busy machine kept from succeeding in
 * its time.
 */
const needsAnother = ({ verdict }: Outcome, { succeedsPlain }: ClientAttempt, { isPlain }: House): boolean =>
  verdict === "unsure" || (isPlain && verdict === "held" && succeedsPlain === true);

async function tryAlone(attempt: ClientAttempt, proving: Proving): Promise<Outcome> {
  let outcome: Outcome = { name: attempt.name, door: attempt.door, verdict: "unsure", leaks: [] };
  await withBrowser(
    proving.house,
    async (browser) => (outcome = await tryClient(attempt, browser, proving)),
  ).catch((error: Error) => {
    outcome = { ...outcome, note: error.message };
  });
  return outcome;
}

async function tryClient(
  attempt: ClientAttempt,
  browser: Browser,
  { house, site }: Proving,
): Promise<Outcome> {
  const { name, door } = attempt;
  const { ground } = house;
  const leaks: string[] = [];
  let note: string | undefined;
  let isLiving = false;
  try {
    const { work, close } = await openWork({ house, browser, site, saw: (what) => leaks.push(what) });
    // Some look round after they have ended the browser.
    const given = await within(systemClock, { what: name, limitMs: attemptLimitMs }, attempt.run(work)).catch(
      (error: Error) => void (note = error.message),
    );
    leaks.push(...wordsIn(given, ground));
    isLiving = await within(
      systemClock,
      { what: "a word of the browser after it", limitMs: 10_000 },
      answers(browser),
    ).then(
      () => true,
      () => false,
    );
    await close();
    // A browser that it ended by itself gives nothing any more; whether it had been tried is what is asked.
    if (!isLiving) note = `the browser was gone after it${note === undefined ? "" : `: ${note}`}`;
  } catch (error) {
    return {
      name,
      door,
      verdict: leaks.length > 0 ? "leaked" : "unsure",
      leaks,
      note: error instanceof Error ? error.message : String(error),
    };
  }
  if (leaks.length > 0) return { name, door, verdict: "leaked", leaks: [...new Set(leaks)] };
  return {
    name,
    door,
    verdict: isLiving || attempt.endsBrowser === true ? "held" : "unsure",
    leaks,
    ...(note !== undefined && { note }),
  };
}

/** Over a connection of its own: an attempt may end the other, and an extension may restart the browser. */
async function answers({ cdpUrl }: Browser): Promise<unknown> {
  const cdp = await connectRaw(cdpUrl);
  return await cdp.send("Browser.getVersion").finally(() => cdp.socket.close());
}

/** What the words found in anything given stand for. */
function wordsIn(given: unknown, { words }: Ground): string[] {
  const texts = textsIn(given);
  return [...words].filter(([each]) => texts.some((text) => text.includes(each))).map(([, what]) => what);
}

/** All at once by one program in the browser's place; without a wall by one as each who might be in it. */
async function tryTogether(
  attempts: readonly ProcessAttempt[],
  { house: { ground }, browser, signal }: Proving & { readonly browser: Browser },
  tell: Tell,
): Promise<void> {
  if (attempts.length === 0 || signal.aborted) return;
  const nonce = randomBytes(6).toString("hex");
  const scriptsIn = ({ kind }: Place): string[] =>
    attempts.filter(({ leavesMarks }) => kind !== "root" || leavesMarks !== true).map(({ script }) => script);
  const signalsBefore = ground.victims.signals();
  const bound = attempts.find((attempt) => attempt.bound !== undefined)?.bound;
  const told: Told = {
    ...toldOf(ground, browser),
    nonce,
    ...(bound !== undefined && { bound, seconds: 60 }),
  };
  const runs = (await browser.places()).map((place) => intrude(place, scriptsIn(place), told));
  const settled = await Promise.allSettled(runs);
  const signals = ground.victims.signals() - signalsBefore;
  for (const attempt of attempts) {
    const texts = settled.flatMap((run) =>
      run.status === "fulfilled" ? (run.value.get(attempt.script) ?? []) : [],
    );
    const leaks = texts.flatMap((text) => leaksIn(text, attempt, { ground, browser }));
    if (attempt.script === "process_signal" && signals > 0) leaks.push("signalled another process");
    const fault = settled.find((run) => run.status === "rejected");
    const note = fault?.status === "rejected" ? String(fault.reason).slice(0, 300) : undefined;
    const verdict = leaks.length > 0 ? "leaked" : note === undefined ? "held" : "unsure";
    tell(attempt, {
      name: attempt.name,
      door: "process",
      verdict,
      leaks: [...new Set(leaks)],
      ...(note !== undefined && { note }),
    });
  }
}

/**
 * The first process of a container: in a process namespace of its own a browser has one of that number too.
 */
const firstPid = 1;

function toldOf(
  { victims, targets, sockets, port, daemonPidInside, directory }: Ground,
  { root }: Browser,
): Told {
  return {
    file: targets.map(({ path }) => path),
    pid: [victims.pid, ...(daemonPidInside === firstPid ? [] : [daemonPidInside])],
    own: root,
    unix: [victims.socket, ...sockets],
    abstract: [victims.abstract],
    port: [victims.tcp, port],
    datagram: [victims.udp],
    key: victims.key,
    segment: [victims.segment],
    into: `${root}/Downloads`,
    directory,
  };
}

/** Whether the mark lies there outside too; it is removed then. */
function isMarked(path: string): boolean {
  const isThere = existsSync(path);
  if (isThere) rmSync(path);
  return isThere;
}

/**
 * A mark that was written inside is a leak where it lies outside too, and not in the browser's own
 * directories.
 */
function leaksIn(
  text: string,
  attempt: ProcessAttempt,
  { ground, browser }: { ground: Ground; browser: Browser },
): string[] {
  const judged = attempt.judge?.(text, ground);
  if (judged !== undefined) return [judged];
  const [, written] = /^wrote: (.*)$/s.exec(text) ?? [];
  if (written !== undefined)
    return isMarked(ground.seen(written)) && !written.startsWith(`${browser.root}/`)
      ? [`wrote ${written}`]
      : [];
  const [, did] = /^did: (.*)$/s.exec(text) ?? [];
  return did !== undefined
    ? [did]
    : [...ground.words].filter(([words]) => text.includes(words)).map(([, what]) => what);
}
