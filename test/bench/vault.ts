import { pause, systemClock } from "../../src/base/clock.js";
import { type Daemon, startDaemon } from "./support/daemon.js";
import { median, quantile } from "./support/figures.js";
import type { Line } from "./support/line.js";
import { makeLightChromium } from "./support/light-chromium.js";
import { runCycles, type Sample, type Side } from "./support/load.js";
import type { Report } from "./support/report.js";
import { inRuns, times } from "./support/runs.js";

const clients = 8;
const browsersPerClient = 4;
const pool = "bench-vault";
const item = "/vaults/bench/items/shop";
/** Between the answer to a change and the next one. */
const restMs = 50;
const bar = 1.05;

const kinds = ["none", "refused", "made"] as const;
/** `refused`: changes of a stale version, which are read and judged alike, and write and sync nothing. */
type Kind = (typeof kinds)[number];
interface Found extends Sample {
  /** How long each change took, in ms. */
  readonly changes: readonly number[];
}
type Run = Readonly<Record<Kind, Found>>;

/** What changes of vaults, each of them on disk before it is answered, cost the acquires beside them. */
export async function benchVault({ runs, sampleMs }: { runs: number; sampleMs: number }): Promise<Report> {
  const fake = await makeLightChromium();
  const daemon = await startDaemon({ executable: fake.executable });
  try {
    await daemon.createPool({ name: pool, size: clients * browsersPerClient });
    const changing = await daemon.open();
    await makeItem(changing);
    const found = await inRuns(runs, (run) => measure({ daemon, changing }, { sampleMs, run }));
    changing.close();
    return report(found);
  } finally {
    await daemon.stop();
    await fake.remove();
  }
}

async function makeItem(line: Line): Promise<void> {
  await line.post("/vaults", JSON.stringify({ name: "bench" }));
  const fields = [{ name: "password", type: "password", value: "at first" }];
  const body = JSON.stringify({ type: "credential", spec: { provider: "native", fields } });
  const { status, body: text } = await line.ask("PUT", item, body);
  if (status >= 300) throw new Error(`the item was refused: ${text}`);
}

async function measure(
  { daemon, changing }: { readonly daemon: Daemon; readonly changing: Line },
  { sampleMs, run }: { readonly sampleMs: number; readonly run: number },
): Promise<Run> {
  const lines = await Promise.all(times(clients).map(() => daemon.open()));
  const path = `/browser_pools/${pool}`;
  const side: Side = { lines, acquirePath: `${path}/acquire`, releasePath: `${path}/release` };
  const found: Partial<Record<Kind, Found>> = {};
  // Each kind comes first, second and third as often.
  const order = kinds.map((_, place) => kinds[(place + run) % kinds.length] ?? "none");
  for (const kind of order) {
    const changes = startChanges(changing, kind);
    const sample = await runCycles(side, sampleMs);
    found[kind] = { ...sample, changes: await changes.stop() };
    await daemon.allIdle(pool);
  }
  for (const line of lines) line.close();
  return found as Run;
}

function startChanges(line: Line, kind: Kind): { stop(): Promise<readonly number[]> } {
  const stopping = new AbortController();
  const took: number[] = [];
  const work = (async () => {
    if (kind === "none") return;
    const { version } = JSON.parse((await line.get(item)).body) as { version: number };
    for (let count = 0; !stopping.signal.aborted; count += 1) {
      const started = systemClock.monotonic();
      const { status, body } = await line.ask(
        "PATCH",
        item,
        JSON.stringify({
          type: "credential",
          version: kind === "made" ? version + count : version + 1_000_000,
          spec: { fields: { password: { value: `the value ${count}` } } },
        }),
      );
      if (status !== (kind === "made" ? 200 : 409))
        throw new Error(`a change was answered ${status} ${body}`);
      took.push(systemClock.monotonic() - started);
      await pause(systemClock, restMs, stopping.signal);
    }
  })();
  work.catch(() => {});
  return {
    async stop() {
      stopping.abort();
      await work;
      return took;
    },
  };
}

const acquire =
  (part: number) =>
  ({ acquires }: Sample): number =>
    quantile(acquires, part);
const ratio = (found: readonly Run[], kind: Kind, figure: (sample: Sample) => number): number =>
  median(found.map((run) => figure(run[kind]) / figure(run.none)));

function report(found: readonly Run[]): Report {
  const whole = (value: number): string => value.toFixed(0);
  const rows = kinds.map((kind) => {
    const changes = found.flatMap((run) => run[kind].changes);
    return [
      kind,
      whole(median(found.map((run) => run[kind].cyclesPerSecond))),
      whole(median(found.map((run) => acquire(0.5)(run[kind])))),
      ratio(found, kind, acquire(0.5)).toFixed(2),
      whole(median(found.map((run) => acquire(0.99)(run[kind])))),
      ratio(found, kind, acquire(0.99)).toFixed(2),
      kind === "none" ? "" : whole(changes.length / found.length),
      kind === "none" ? "" : median(changes).toFixed(1),
    ];
  });
  const cost = median(found.map((run) => acquire(0.5)(run.made) / acquire(0.5)(run.refused)));
  return {
    title: "Acquires beside changes of a vault",
    method: [
      `${clients} clients acquire and release in a row; one more changes an item of a vault, and again ${restMs} ms after each answer.`,
      "Acquires in µs, changes in ms. A change that is made is on disk before it is answered; one that is refused is of a stale version,",
      "and so costs the daemon as much, but for the writing.",
    ],
    head: ["changes", "cycles/s", "acquire p50", "times", "p99", "times", "changes", "p50"],
    rows,
    bars: [
      {
        what: `acquire p50 beside changes that are made, at most ${bar} times that beside refused ones`,
        is: `${cost.toFixed(2)} times`,
        isMet: cost <= bar,
      },
    ],
  };
}
