import { systemClock } from "../../src/base/clock.js";
import { type Daemon, startDaemon, until } from "./support/daemon.js";
import { median, quantile } from "./support/figures.js";
import type { Line } from "./support/line.js";
import type { Report } from "./support/report.js";
import { inRuns, inTurn, times } from "./support/runs.js";

/** The bar of POST /browsers where a browser stands by. */
const barMs = 5;
/** So many stand by, and are taken one after the other, each beside a launch. */
const pairsPerRun = 8;
const body = { headless: true };

interface Pair {
  readonly stood: number;
  readonly launched: number;
}

/** POST /browsers that takes a browser which stands by, beside one of another shape that is launched. */
export async function benchStandby({ runs }: { runs: number }): Promise<Report> {
  const daemon = await startDaemon({ sections: { standby: [{ ...body, count: pairsPerRun }] } });
  try {
    const line = await daemon.open();
    const found = await inRuns(runs, () => measureAll(daemon, line));
    line.close();
    return report(found.flat());
  } finally {
    await daemon.stop();
  }
}

const measureAll = (daemon: Daemon, line: Line): Promise<readonly Pair[]> =>
  inTurn(times(pairsPerRun), async () => ({
    launched: await measure(daemon, line, { stealth: true }),
    stood: await measure(daemon, line, {}),
  }));

async function measure(daemon: Daemon, line: Line, over: object): Promise<number> {
  await allStandBy(daemon, line);
  const started = systemClock.monotonic();
  const { status, body: text } = await line.post("/browsers", JSON.stringify({ ...body, ...over }));
  const tookMs = systemClock.monotonic() - started;
  if (status !== 200) throw new Error(`a session was answered ${status} ${text}`);
  await line.delete(`/browsers/${(JSON.parse(text) as { session_id: string }).session_id}`, "");
  return tookMs;
}

/** Nothing is launched or ended meanwhile. */
const allStandBy = ({ origin }: Daemon, line: Line): Promise<void> =>
  until(`all stand by at ${origin}`, async () => {
    const { body: text } = await line.get("/metrics");
    const counts = [...text.matchAll(/^remuda_pool_browsers\{.*state="(\w+)".*\} (\d+)$/gm)];
    return counts.every(([, state, count]) => Number(count) === (state === "idle" ? pairsPerRun : 0));
  });

function report(pairs: readonly Pair[]): Report {
  const of = (side: keyof Pair): readonly number[] => pairs.map((pair) => pair[side]);
  const row = (what: string, side: keyof Pair): string[] => [
    what,
    median(of(side)).toFixed(1),
    quantile(of(side), 0.95).toFixed(1),
  ];
  const stood = median(of("stood"));
  return {
    title: "POST /browsers: a browser that stands by, beside a launch",
    method: [
      `Full Chromium, headless, one client, ${pairs.length} pairs in turn; ${pairsPerRun} browsers stand by before each, and nothing else is under way.`,
    ],
    head: ["", "p50 ms", "p95 ms"],
    rows: [row("one that stands by", "stood"), row("launched", "launched")],
    bars: [
      { what: `standby: at most ${barMs} ms (p50)`, is: `${stood.toFixed(1)} ms`, isMet: stood <= barMs },
    ],
  };
}
