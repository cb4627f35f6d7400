import { systemClock } from "../../../src/base/clock.js";
import { TimeLimitReached, within } from "../../../src/base/deadline.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { type Attempt, type ClientAttempt, NothingProved, type ProcessAttempt } from "./corpus/attempt.js";
import type { Browser, BrowserSource } from "./browser-source.js";
import { notBegun, type Outcome, type Proving, type Tell } from "./outcome.js";
import { tryTogether } from "./try-processes.js";
import { isRoot } from "./programs.js";
import { openWork, wordsIn } from "./work.js";

/** An attempt ends by events, held or not: only what hangs takes so long. */
const attemptLimitMs = 240_000;
/** Attempts that have a browser of their own, beside those that share one. */
const parallel = 2;

export async function runCorpus(corpus: readonly Attempt[], proving: Proving): Promise<readonly Outcome[]> {
  const outcomes = new Map<Attempt, Outcome>();
  const { source, signal } = proving;
  const tell = (attempt: Attempt, given: Outcome): void => {
    const outcome = source.isPlain ? given : admittedFor(attempt.isAdmitted, given);
    outcomes.set(attempt, outcome);
    proving.onOutcome?.(outcome);
  };
  const wanted = corpus.filter(
    ({ needsChromium, needsHeadless, needsPod }) =>
      (!needsChromium || source.kind.engine === "chromium") &&
      (!needsHeadless || source.kind.headless) &&
      (!needsPod || source.openPod !== undefined),
  );
  const shared = wanted.filter(({ isAlone }) => !isAlone);
  const sharing = withBrowser(source, async (browser) => {
    await tryTogether(shared.filter(isProcess), { ...proving, browser }, tell);
    await tryEach(shared.filter(isClient), { proving, tell, browser });
  }).catch((error: Error) => {
    // Nothing is known of those whose browser did not start, and the others go on.
    const left = shared.filter((attempt) => !signal.aborted && !outcomes.has(attempt));
    for (const attempt of left) tell(attempt, unsureOf(attempt, error));
  });
  const alone = wanted.filter(isClient).filter(({ isAlone }) => isAlone);
  await Promise.all([sharing, tryApart(alone, { proving, tell })]);
  for (const attempt of wanted.filter(isProcess).filter(({ isAlone }) => isAlone)) {
    if (!signal.aborted)
      await withBrowser(source, (browser) => tryTogether([attempt], { ...proving, browser }, tell));
  }
  return corpus.map(
    (attempt) =>
      outcomes.get(attempt) ?? {
        name: attempt.name,
        vector: attempt.vector,
        verdict: "not tried",
        leaks: [],
        note: wanted.includes(attempt) ? notBegun : "of another kind of browser or container",
      },
  );
}

const admittedFor = (because: string | undefined, outcome: Outcome): Outcome =>
  outcome.verdict === "leaked" && because !== undefined
    ? { ...outcome, verdict: "admitted", note: because }
    : outcome;

const unsureOf = ({ name, vector }: Attempt, { message: note }: Error): Outcome => ({
  name,
  vector,
  verdict: "unsure",
  leaks: [],
  note,
});

const isProcess = (attempt: Attempt): attempt is ProcessAttempt => attempt.vector === "process";
const isClient = (attempt: Attempt): attempt is ClientAttempt => attempt.vector !== "process";

async function withBrowser(
  source: BrowserSource,
  work: (browser: Browser) => Promise<unknown>,
): Promise<void> {
  const browser = await source.open();
  try {
    await work(browser);
  } finally {
    await browser.close();
  }
}

interface Trying {
  readonly proving: Proving;
  readonly tell: Tell;
}

/** Each in a browser of its own, and those of one name in one. */
async function tryApart(attempts: readonly ClientAttempt[], trying: Trying): Promise<void> {
  const {
    proving: { source, signal },
  } = trying;
  const nameOf = ({ name, isAlone }: ClientAttempt): string => (typeof isAlone === "string" ? isAlone : name);
  const left = [...new Set(attempts.map(nameOf))].map((group) =>
    attempts.filter((attempt) => nameOf(attempt) === group),
  );
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next && !signal.aborted; next = left.shift()) {
      const together = next;
      if (together.length === 1) await tryEach(together, trying);
      else await withBrowser(source, (browser) => tryEach(together, { ...trying, browser }));
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
    const last = needsAnother(outcome, attempt, proving.source) ? await tryAlone(attempt, proving) : outcome;
    tell(attempt, { ...last, ms: Math.round(performance.now() - startedAt) });
  }
}

/**
 * What took a browser with it, or found it gone; and a control that a busy machine kept from succeeding in
 * its time.
 */
const needsAnother = ({ verdict }: Outcome, attempt: ClientAttempt, source: BrowserSource): boolean =>
  verdict === "unsure" || (verdict === "held" && isControl(attempt, source));

/** Does the attempt have to succeed there? */
const isControl = ({ succeedsPlain }: ClientAttempt, { isPlain }: BrowserSource): boolean =>
  isPlain && (succeedsPlain === true || (succeedsPlain === "as root" && isRoot));

async function tryAlone(attempt: ClientAttempt, proving: Proving): Promise<Outcome> {
  let outcome: Outcome | undefined;
  await withBrowser(
    proving.source,
    async (browser) => (outcome = await tryClient(attempt, browser, proving)),
  ).catch((error: Error) => {
    // What was found stays found where only the browser's end has failed.
    outcome = outcome ? { ...outcome, note: error.message } : unsureOf(attempt, error);
  });
  return outcome ?? unsureOf(attempt, new Error("it was not tried"));
}

async function tryClient(
  attempt: ClientAttempt,
  browser: Browser,
  { source, site }: Proving,
): Promise<Outcome> {
  const leaks: string[] = [];
  try {
    const admitted: string[] = [];
    const asked = { source, browser, site, isControl: isControl(attempt, source), leaks, admitted };
    const { work, close } = await openWork(asked);
    const { given, note, saysNothing } = await runWithin(attempt, work);
    leaks.push(...wordsIn(given, source.machine));
    const limit = { what: "a word of the browser after it", limitMs: 30_000 };
    const isLiving = await within(systemClock, limit, answers(browser)).then(
      () => true,
      () => false,
    );
    await close();
    return admittedFor(admitted[0], judged(attempt, { leaks, note, saysNothing, isLiving }));
  } catch (error) {
    const unsure = unsureOf(attempt, error instanceof Error ? error : new Error(String(error)));
    return leaks.length > 0 ? { ...unsure, verdict: "leaked", leaks } : unsure;
  }
}

interface Ran {
  readonly given?: unknown;
  /** What it threw: a refusal is a wall that holds. */
  readonly note?: string | undefined;
  /** It could not be made, or neither succeeded nor failed in its time. */
  readonly saysNothing: boolean;
}

const runWithin = (attempt: ClientAttempt, work: Parameters<ClientAttempt["run"]>[0]): Promise<Ran> =>
  within(systemClock, { what: attempt.name, limitMs: attemptLimitMs }, attempt.run(work)).then(
    (given) => ({ given, saysNothing: false }),
    (error: Error) => ({
      note: error.message,
      saysNothing:
        error instanceof NothingProved || (error instanceof TimeLimitReached && error.what === attempt.name),
    }),
  );

function judged(
  { name, vector, endsBrowser }: ClientAttempt,
  {
    leaks,
    note,
    saysNothing,
    isLiving,
  }: Omit<Ran, "given"> & { leaks: readonly string[]; isLiving: boolean },
): Outcome {
  if (leaks.length > 0) return { name, vector, verdict: "leaked", leaks: [...new Set(leaks)] };
  // A browser that it ended by itself gives nothing any more; whether it had been tried is what is asked.
  const gone = `the browser was gone after it${note === undefined ? "" : `: ${note}`}`;
  const told = isLiving ? note : gone;
  return {
    name,
    vector,
    verdict: !saysNothing && (isLiving || endsBrowser === true) ? "held" : "unsure",
    leaks,
    ...(told !== undefined && { note: told }),
  };
}

/** Uses a connection of its own: an attempt may end the other, and an extension may restart the browser. */
async function answers({ cdpUrl }: Browser): Promise<unknown> {
  const cdp = await connectRaw(cdpUrl);
  return await cdp.send("Browser.getVersion").finally(() => cdp.socket.close());
}
