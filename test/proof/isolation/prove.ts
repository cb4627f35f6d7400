import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { whyNoContainers } from "./container.js";
import { type Context, findContexts } from "./contexts.js";
import type { Attempt } from "./corpus/attempt.js";
import { corpus, quickControls } from "./corpus/all.js";
import type { Tier } from "./daemon.js";
import type { Kind } from "../arguments.js";
import { openGround, type OpenMachine } from "./machine.js";
import type { BrowserSource } from "./browser-source.js";
import { tryLeftovers, tryLeftoversPlain } from "./leftovers.js";
import { type Options, readOptions, usage } from "./options.js";
import { openPlain } from "./plain.js";
import { isRoot } from "./programs.js";
import { lineOf, type Part, partOf, summaryOf } from "./report.js";
import { runCorpus } from "./run.js";
import { openSite, type Site } from "./site.js";
import { trySuccessors } from "./successor/try.js";
import { openWalled } from "./walled.js";

/** The manifests of the repository, beside the build that this file is part of. */
const manifests = join(import.meta.dirname, "../../../../k8s");

/** The first signal lets what is under way end and clears up; the second ends it at once. */
const stopping = new AbortController();

/** The proof as an operator runs it: `npm run prove:isolation`. Gives the exit code. */
async function main(args: readonly string[]): Promise<number> {
  if (args.includes("--help")) {
    console.log(usage);
    return 0;
  }
  const options = readOptions(args);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort());
  const site = await openSite();
  const parts = await runAll(options, site).finally(() => site.close());
  if (options.json !== undefined) await writeFile(options.json, JSON.stringify(parts));
  console.log(summaryOf(parts));
  return parts.every(({ isGood }) => isGood) && !stopping.signal.aborted ? 0 : 1;
}

async function runAll(options: Options, site: Site): Promise<readonly Part[]> {
  const parts: Part[] = [];
  const controlled = options.control ? ["user", "root"].find((name) => isRoot || name === "user") : undefined;
  if (controlled !== undefined) {
    parts.push(...(await runTier({ name: controlled }, { options, site, isPlain: true })));
    if (hasLeftovers(options)) parts.push(await reported("no walls, leftovers", tryLeftoversPlain));
  }
  for (const name of options.tiers) {
    if (stopping.signal.aborted) break;
    parts.push(...(await runTiers(name, { options, site, isPlain: false })));
  }
  return parts;
}

async function runTiers(name: string, running: Running): Promise<readonly Part[]> {
  const lacking = await whyNot(name);
  if (lacking !== undefined) return [absent(name, lacking)];
  const parts: Part[] = [];
  for (const tier of await tiersOf(name, running.options)) {
    parts.push(...(await runTier(tier, running)));
    const { options } = running;
    if (hasLeftovers(options) && tier.context === undefined)
      parts.push(await reported(`leftovers, ${tier.name}`, () => tryLeftovers(tier, options.kinds)));
    if (hasSuccessors(options) && tier.context === undefined)
      parts.push(...(await successors(tier, options)));
  }
  return parts;
}

const hasLeftovers = ({ isQuick, only }: Options): boolean =>
  !isQuick && (only === undefined || "leftovers".includes(only));

/** Their control is a pool that resets nothing, so they need none without walls. */
const hasSuccessors = ({ isQuick, only }: Options): boolean =>
  !isQuick && (only === undefined || only.startsWith("next holder"));

async function successors(tier: Tier, { kinds, only }: Options): Promise<readonly Part[]> {
  const title = `next holder, ${tier.name}`;
  const parts = await trySuccessors(tier, kinds, only).catch((error: unknown) => [failed(title, error)]);
  for (const part of parts) tell(part);
  return parts;
}

function tell({ title, outcomes }: Part): void {
  console.error(`\n${title}\n${"=".repeat(title.length)}`);
  for (const each of outcomes) console.error(lineOf(each));
}

async function reported(title: string, attempt: () => Promise<Part>): Promise<Part> {
  const part = await attempt().catch((error: unknown) => failed(title, error));
  tell(part);
  return part;
}

async function whyNot(name: string): Promise<string | undefined> {
  if (name === "root" && !isRoot) return "it takes root";
  return name === "container" ? await whyNoContainers() : undefined;
}

async function tiersOf(name: string, { context: wanted }: Options): Promise<readonly Tier[]> {
  if (name !== "container") return [{ name }];
  const contexts = await findContexts(manifests);
  return contexts
    .filter((context) => wanted === undefined || context.name.includes(wanted))
    .map((context) => ({ name: `container, ${context.name}`, context }));
}

/** What is not there was not proved: only who has not asked for it may take the rest for the whole. */
const absent = (title: string, why: string): Part => ({
  title,
  isPlain: false,
  isAbsent: true,
  outcomes: [],
  faults: [`not tried here: ${why}; --tier and --without-containers leave out what cannot be had`],
  notes: [],
  isGood: false,
});
/** As this page of the repository says: docs/isolation.md, In containers. */
const launchesNothing = (title: string, why: string): Part => ({
  title,
  isPlain: false,
  outcomes: [{ name: "launches nothing", vector: "outside", verdict: "held", leaks: [] }],
  faults: [],
  notes: [why],
  isGood: true,
});

interface Running {
  readonly options: Options;
  readonly site: Site;
  readonly isPlain: boolean;
}

/**
 * In a container a display of one's own shows nothing that headless browsers do not; without a wall it takes
 * one of the machine's.
 */
const kindsOf = ({ kinds }: Options, { context }: Tier, isPlain: boolean): readonly Kind[] =>
  kinds.filter(({ headless }) => headless || (!isPlain && context === undefined));

async function runTier(tier: Tier, running: Running): Promise<readonly Part[]> {
  const { options, isPlain } = running;
  let machine: OpenMachine | undefined;
  try {
    machine = await openGround(tier);
    const title = `${tier.name}, rung`;
    const parts: Part[] = tier.context ? [await reported(title, rungIn(machine, title, tier.context))] : [];
    for (const kind of kindsOf(options, tier, isPlain))
      parts.push(await runKind(kind, { tier, machine, running }));
    return parts;
  } catch (error) {
    // Nothing leaks where there is no browser, but where a wall is promised that is a fault all the same.
    return [
      tier.context?.expected.rung === "none"
        ? launchesNothing(tier.name, textOf(error))
        : failed(tier.name, error),
    ];
  } finally {
    if (options.log !== undefined && machine) await appendFile(options.log, machine.daemon.log());
    await machine?.close();
  }
}

/** Whether browsers stand where docs/isolation.md says that they do in this context. */
const rungIn =
  (machine: OpenMachine, title: string, { expected }: Context) =>
  async (): Promise<Part> => {
    const browser = await openWalled(machine, { engine: "headless-shell", headless: true }).open();
    await browser.close();
    const { rung, network } = browser.isolation ?? {};
    const isAsSaid = rung === expected.rung && network === expected.network;
    const name = `it is ${String(rung)}, network ${String(network)}; docs/isolation.md says ${expected.rung}, ${expected.network}`;
    return {
      title,
      isPlain: false,
      outcomes: [{ name, vector: "outside", verdict: isAsSaid ? "held" : "leaked", leaks: [] }],
      faults: isAsSaid ? [] : [name],
      notes: [],
      isGood: isAsSaid,
    };
  };

async function runKind(
  kind: Kind,
  { tier, machine, running }: { tier: Tier; machine: OpenMachine; running: Running },
): Promise<Part> {
  const title = `${running.isPlain ? "no walls" : tier.name}, ${nameOf(kind)}`;
  try {
    return await run(title, running.isPlain ? await openPlain(machine, kind) : openWalled(machine, kind), {
      ...running,
      isShort: isShortIn(tier, running.options),
    });
  } catch (error) {
    return failed(title, error);
  }
}

const nameOf = ({ engine, headless }: Kind): string =>
  engine === "chromium" ? `${headless ? "headless" : "headful"} Chromium` : engine;
const textOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).slice(0, 600);
const failed = (title: string, error: unknown): Part => ({
  title,
  isPlain: false,
  outcomes: [],
  faults: [`could not be run: ${textOf(error)}`],
  notes: [],
  isGood: false,
});

/**
 * Other containers than the one that is shipped differ in what their kernel lets a daemon build; what a
 * browser can do within that the other tiers have tried.
 */
const isShortIn = ({ context }: Tier, { isQuick, only }: Options): boolean =>
  isQuick || (context !== undefined && !context.isShipped && only === undefined);

async function run(
  title: string,
  source: BrowserSource,
  { options, site, isPlain, isShort }: Running & { readonly isShort: boolean },
): Promise<Part> {
  const isWanted = (attempt: Attempt): boolean =>
    isPlain ? quickControls.includes(attempt) : attempt.isQuick === true;
  const wanted = corpus.filter(
    (attempt) =>
      (options.only === undefined || attempt.name.includes(options.only)) && (!isShort || isWanted(attempt)),
  );
  const startedAt = performance.now();
  console.error(`\n${title}\n${"=".repeat(title.length)}`);
  const outcomes = await runCorpus(wanted, {
    source,
    site,
    signal: stopping.signal,
    onOutcome: (outcome) => console.error(lineOf(outcome)),
  });
  console.error(`${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  return partOf(title, { isPlain, outcomes, corpus: wanted, hasRoot: isRoot });
}

const code = await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.stack : error);
  return 2;
});
// A client's browser that is just being left goes with the process.
process.exit(code);
