import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { systemClock } from "../../src/base/clock.js";
import { newScratchDirectory } from "../support/killed-runs.js";
import { openSite } from "../support/browser/chromium-site.js";
import { bareCommand } from "./support/bare.js";
import { startDaemon } from "./support/daemon.js";
import { median } from "./support/figures.js";
import type { Line } from "./support/line.js";
import type { Lease } from "./support/load.js";
import type { Bar, Report } from "./support/report.js";
import { inRuns, inTurn, times } from "./support/runs.js";

// Playwright would end the process at a signal, before the daemon is stopped.
const ownSignals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false } as const;
/** So many of the daemon's cycles beside each launch. */
const cyclesPerLaunch = 5;
const pool = "bench-session";

/** What a client does with its browser; the time runs until it is done and the browser is given back. */
interface Kind {
  readonly name: string;
  readonly bar?: number;
  /** Uses the browser, and returns the page it used. The daemon's browser has a page open already. */
  use(browser: Browser, at: { readonly url: string; readonly isOpen: boolean }): Promise<Page>;
  /** The page is closed, off the clock, so that the next lease finds the browser as this one did. */
  readonly leavesPage?: true;
  /** Up to the end of `use`, the way back not counted. */
  readonly isShort?: true;
}

const openPage = ([context]: ReturnType<Browser["contexts"]>): Page | undefined => context?.pages()[0];
const pageOf = async (browser: Browser, isOpen: boolean): Promise<Page> =>
  (isOpen ? openPage(browser.contexts()) : undefined) ?? (await browser.newPage());

const kinds: readonly Kind[] = [
  {
    name: "first command",
    isShort: true,
    async use(browser, { isOpen }) {
      const page = await pageOf(browser, isOpen);
      await page.evaluate("1 + 1");
      return page;
    },
  },
  {
    name: "goto, open page",
    bar: 5,
    use: async (browser, { url, isOpen }) => await shown(await pageOf(browser, isOpen), url),
  },
  {
    name: "goto, new page",
    bar: 4,
    leavesPage: true,
    use: async (browser, { url, isOpen }) =>
      await shown(await ((isOpen && browser.contexts()[0]) || browser).newPage(), url),
  },
];

async function shown(page: Page, url: string): Promise<Page> {
  await page.goto(url);
  return page;
}

/** A client's whole way to a page and back, beside a browser it launches itself. */
export async function benchSession({ runs }: { runs: number }): Promise<Report> {
  const site = await openSite();
  const daemon = await startDaemon();
  const scratch = newScratchDirectory();
  try {
    await daemon.createPool({ name: pool, size: 3 });
    const line = await daemon.open();
    const place = { line, scratch, url: `${site.origin}/page` };
    const found = await inRuns(runs, () => inTurn(kinds, (kind) => measure(place, kind)));
    line.close();
    return report(found.flat());
  } finally {
    await daemon.stop();
    await site.close();
    await rm(scratch, { recursive: true, force: true });
  }
}

interface Place {
  readonly line: Line;
  readonly scratch: string;
  readonly url: string;
}
interface Pair {
  readonly kind: Kind;
  readonly lent: number;
  readonly launched: number;
}

const measure = async (place: Place, kind: Kind): Promise<Pair> => ({
  kind,
  lent: median(await inTurn(times(cyclesPerLaunch), () => lend(place, kind))),
  launched: await launch(place, kind),
});

async function lend({ line, url }: Place, { use, isShort, leavesPage }: Kind): Promise<number> {
  const started = systemClock.monotonic();
  const { status, body } = await line.post(`/browser_pools/${pool}/acquire`, "{}");
  if (status !== 200) throw new Error(`an acquire was answered ${status} ${body}`);
  const { session_id, lease_id, cdp_ws_url } = JSON.parse(body) as Lease;
  const browser = await chromium.connectOverCDP(cdp_ws_url);
  const page = await use(browser, { url, isOpen: true });
  const usedMs = systemClock.monotonic() - started;
  if (leavesPage) await page.close();
  const leftAt = systemClock.monotonic();
  await browser.close();
  await line.post(`/browser_pools/${pool}/release`, JSON.stringify({ session_id, lease_id }));
  return isShort ? usedMs : usedMs + systemClock.monotonic() - leftAt;
}

async function launch({ scratch, url }: Place, { use, isShort }: Kind): Promise<number> {
  const profile = await mkdtemp(join(scratch, "profile-"));
  const { executable, switches } = await bareCommand("chromium", profile);
  const started = systemClock.monotonic();
  const browser = await chromium.launch({
    executablePath: executable,
    args: switches,
    ignoreDefaultArgs: true,
    ...ownSignals,
  });
  await use(browser, { url, isOpen: false });
  const used = systemClock.monotonic();
  await browser.close();
  const ended = systemClock.monotonic();
  await rm(profile, { recursive: true, force: true });
  return (isShort ? used : ended) - started;
}

function rowOf({ name, bar }: Kind, pairs: readonly Pair[]): { cells: string[]; bars: readonly Bar[] } {
  const faster = median(pairs.map(({ lent, launched }) => launched / lent));
  const cells = [
    name,
    median(pairs.map(({ lent }) => lent)).toFixed(1),
    median(pairs.map(({ launched }) => launched)).toFixed(1),
    faster.toFixed(1),
  ];
  if (bar === undefined) return { cells, bars: [] };
  const isMet = faster >= bar;
  return {
    cells: [...cells, isMet ? "met" : "missed"],
    bars: [
      { what: `session, ${name}: at least ${bar} times faster`, is: `${faster.toFixed(1)} times`, isMet },
    ],
  };
}

function report(found: readonly Pair[]): Report {
  const rows = kinds.map((kind) =>
    rowOf(
      kind,
      found.filter((pair) => pair.kind === kind),
    ),
  );
  return {
    title: "A page: acquire, connectOverCDP, goto, release beside launch, newPage, goto, close",
    method: [
      `Full Chromium, headless, the same switches; Playwright on both sides, one client. Per run ${cyclesPerLaunch} cycles of the daemon (their median) and one launch.`,
      '"new page": in the default context of the daemon\'s browser, and closed off the clock. "first command": from the acquire, or the launch, to the result of an evaluate on a page; the way back is not counted.',
    ],
    head: ["", "daemon ms", "launch ms", "times faster", "bar"],
    rows: rows.map(({ cells }) => cells),
    bars: rows.flatMap(({ bars }) => bars),
  };
}
