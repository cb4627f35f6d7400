import { rm } from "node:fs/promises";
import { pause, systemClock } from "../../src/base/clock.js";
import type { Engine } from "../../src/browser/chromium.js";
import { findNamespaces, type Namespaces } from "../../src/egress/namespace/namespace.js";
import { openTestHost, silentLog } from "../support/browser/chromium-host.js";
import { newScratchDirectory } from "../support/killed-runs.js";
import { median, quantile } from "./support/figures.js";
import type { Bar, Report } from "./support/report.js";
import { inRuns, inTurn, times } from "./support/runs.js";
import { type Launcher, makeLauncher } from "./tiers/launching.js";
import { egressKiB, treeKiB } from "./tiers/memory.js";
import { type Column, columns, type Tier, tiersOf, type EgressChoice } from "./tiers/ways.js";

const launchesPerRun = 4;
const settleMs = 3000;
const egresses = 50;
const namespacesPerRun = 10;
const barMs = 120;

/**
 * One figure for each way out, one right after the other; none for a tier that this machine does not grant.
 */
type Found<Figure> = Readonly<Partial<Record<Column, Figure>>>;

interface Row {
  readonly name: string;
  readonly found: readonly Found<number>[];
  /** Which of the figures is told; left out: the median. */
  readonly part?: number;
}

interface BenchParts {
  readonly launcher: Launcher;
  readonly namespaces: Namespaces;
  readonly tiers: readonly Tier[];
  readonly runs: number;
}

/** What a tier costs: to launch a browser in it, and to keep it. */
export async function benchTiers({ runs }: { runs: number }): Promise<Report> {
  const scratchDirectory = newScratchDirectory();
  const host = await openTestHost({ scratchDirectory });
  const launcher = makeLauncher(host);
  try {
    const namespaces = await findNamespaces({
      tools: host.tools,
      clock: systemClock,
      log: silentLog,
      spare: 2,
    });
    const parts: BenchParts = { launcher, namespaces, tiers: tiersOf(namespaces, host), runs };
    const rows: Row[] = [];
    for (const engine of Object.keys(host.executables) as Engine[])
      rows.push(...(await launchTimes(engine, parts)), await browserMemory(engine, parts));
    return report([...rows, ...(await egressMemory(parts)), ...(await namespaceTimes(parts))], namespaces);
  } finally {
    await launcher.close();
    await host.close();
    await rm(scratchDirectory, { recursive: true, force: true });
  }
}

const choices = ({ tiers }: BenchParts): readonly EgressChoice[] => [{ name: "none" }, ...tiers];

async function forEach<Each extends EgressChoice, Figure>(
  each: readonly Each[],
  measure: (choice: Each) => Promise<Figure>,
): Promise<Found<Figure>> {
  return Object.fromEntries(
    await inTurn(each, async (choice) => [choice.name, await measure(choice)] as const),
  );
}

/** One of several figures that were found together. */
const only = <Figures>(
  found: readonly Found<Figures>[],
  figure: (figures: Figures) => number,
): Found<number>[] =>
  found.map((one) =>
    Object.fromEntries(Object.entries(one).map(([name, figures]) => [name, figure(figures)])),
  );

async function launchTimes(engine: Engine, parts: BenchParts): Promise<Row[]> {
  const measure = async (choice: EgressChoice): Promise<{ readyMs: number; attestMs: number }> => {
    const { end, readyMs, attestMs } = await parts.launcher.launch(engine, choice);
    await end();
    return { readyMs, attestMs };
  };
  const found = (
    await inRuns(parts.runs, () => inTurn(times(launchesPerRun), () => forEach(choices(parts), measure)))
  ).flat();
  return [
    { name: `${engine}: launch, ms`, found: only(found, ({ readyMs }) => readyMs) },
    { name: `${engine}: attestation in it, ms`, found: only(found, ({ attestMs }) => attestMs) },
  ];
}

async function browserMemory(engine: Engine, parts: BenchParts): Promise<Row> {
  const found = await inRuns(parts.runs, async () => {
    const launched = await inTurn(choices(parts), async (choice) => ({
      name: choice.name,
      ...(await parts.launcher.launch(engine, choice)),
    }));
    await pause(systemClock, settleMs);
    const sizes = await inTurn(
      launched,
      async ({ name, chromium }) => [name, (await treeKiB(chromium)) / 1024] as const,
    );
    await Promise.all(launched.map(({ end }) => end()));
    return Object.fromEntries(sizes) as Found<number>;
  });
  return { name: `${engine}: memory, MiB`, found };
}

async function egressMemory({ tiers, runs }: BenchParts): Promise<Row[]> {
  const found = await inRuns(runs, () => forEach(tiers, (tier) => egressKiB(tier, egresses)));
  return [
    { name: "an egress in the daemon, KiB", found: only(found, ({ daemon }) => daemon) },
    { name: "an egress in the kernel, KiB", found: only(found, ({ kernel }) => kernel) },
  ];
}

const setUp = "a namespace opened and closed, p50 ms";

async function namespaceTimes({ namespaces, runs }: BenchParts): Promise<Row[]> {
  if (namespaces.kind === "unavailable") return [];
  const found = (
    await inRuns(runs, () =>
      inTurn(times(namespacesPerRun), async () => {
        const started = systemClock.monotonic();
        (await namespaces.openNamespace()).close();
        return { namespace: systemClock.monotonic() - started };
      }),
    )
  ).flat();
  return [
    { name: setUp, found },
    { name: "a namespace opened and closed, p95 ms", found, part: 0.95 },
  ];
}

const shown = (value: number): string =>
  Number.isNaN(value) ? "" : value.toFixed(Math.abs(value) < 10 ? 1 : 0);
const figureOf = ({ found, part = 0.5 }: Row, name: Column): number =>
  quantile(
    found.map((each) => each[name] ?? Number.NaN),
    part,
  );

/** The median of what each one took more than the one without an egress beside it. */
const more = ({ found }: Row, name: Column): number =>
  median(found.map((each) => (each[name] ?? Number.NaN) - (each.none ?? Number.NaN)));

function report(rows: readonly Row[], namespaces: Namespaces): Report {
  return {
    title: "Tiers of egress",
    method: [
      `Launch: headless, one at a time, ${launchesPerRun} of each a run, from the opening of the egress until the browser is ready, its egress attested; none: without egress.`,
      `Memory: the browser's processes (PSS), one of each way out beside the others, ${settleMs / 1000} s after the last of them was ready.`,
      `An egress: ${egresses} opened, the growth divided; in the daemon heap and external memory after a collection, in the kernel Slab and Percpu of the whole machine, so roughly.`,
      `A namespace: with its socket and devices, nothing else, ${namespacesPerRun} one after the other a run.`,
      ...(namespaces.kind === "unavailable" ? [`No namespaces here: ${namespaces.why}.`] : []),
    ],
    head: ["", ...columns, "proxy - none", "namespace - none"],
    rows: rows.map((row) => [
      row.name,
      ...columns.map((name) => shown(figureOf(row, name))),
      shown(more(row, "proxy")),
      shown(more(row, "namespace")),
    ]),
    bars: rows.filter(({ name }) => name === setUp).map(barOf),
  };
}

function barOf(row: Row): Bar {
  const p50 = figureOf(row, "namespace");
  return {
    what: `namespace tier: set up in at most ${barMs} ms, p50`,
    is: `${shown(p50)} ms`,
    isMet: p50 <= barMs,
  };
}
