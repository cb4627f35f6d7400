import { join } from "node:path";
import { systemClock } from "../../src/base/clock.js";
import { type Asker, openAnew, openKept, openPlain, receiveBody, type OriginPath } from "./egress/client.js";
import { bodyBytes } from "./egress/exchange.js";
import { median } from "./support/figures.js";
import { type Helper, startHelper } from "./support/processes.js";
import type { Report } from "./support/report.js";
import { inRuns, inTurn, times } from "./support/runs.js";

const parallel = 16;
const sampleMs = 700;
const bar = 0.8;

const names = ["direct", "ours", "library"] as const;
type Name = (typeof names)[number];

const asked = {
  "plain GET, requests/s": openPlain,
  "new tunnel + GET, requests/s": openAnew,
  "GET in a kept tunnel, requests/s": openKept,
} as const;
const bodyRow = "body through a tunnel, MB/s";
type Row = keyof typeof asked | typeof bodyRow;
type Found = Record<Row, Record<Name, number>>;

/** What the egress costs, beside a direct connection and beside the library's server without hooks. */
export async function benchEgress({ runs }: { runs: number }): Promise<Report> {
  const helpers: Helper[] = [];
  const start = async (program: string): Promise<URL> => {
    const helper = await startHelper({
      file: join(import.meta.dirname, `egress/${program}.js`),
      find: (line) => /^listening (\S+)$/.exec(line)?.[1],
    });
    helpers.push(helper);
    return new URL(helper.said);
  };
  try {
    const origin = Number((await start("origin")).port);
    const ways: Record<Name, OriginPath> = {
      direct: { origin },
      ours: { origin, proxy: await start("ours") },
      library: { origin, proxy: await start("library") },
    };
    return report(await inRuns(runs, () => measure(ways)));
  } finally {
    for (const helper of helpers) await helper.stop();
  }
}

async function measure(ways: Record<Name, OriginPath>): Promise<Found> {
  const row = async (of: (way: OriginPath) => Promise<number>): Promise<Record<Name, number>> => {
    const [direct = 0, ours = 0, library = 0] = await inTurn(names, (name) => of(ways[name]));
    return { direct, ours, library };
  };
  const rows = await inTurn(
    Object.entries(asked),
    async ([name, open]) => [name, await row((way) => perSecond(way, open))] as const,
  );
  return { ...Object.fromEntries(rows), [bodyRow]: await row(megabytesPerSecond) } as Found;
}

async function perSecond(way: OriginPath, open: (way: OriginPath) => Promise<Asker>): Promise<number> {
  const askers = await Promise.all(times(parallel).map(() => open(way)));
  const started = systemClock.monotonic();
  let count = 0;
  await Promise.all(
    askers.map(async (asker) => {
      for (; systemClock.monotonic() - started < sampleMs; count += 1) await asker.ask();
    }),
  );
  const tookMs = systemClock.monotonic() - started;
  for (const asker of askers) asker.end();
  return (count / tookMs) * 1000;
}

async function megabytesPerSecond(way: OriginPath): Promise<number> {
  const started = systemClock.monotonic();
  await receiveBody(way);
  return bodyBytes / 1e6 / ((systemClock.monotonic() - started) / 1000);
}

function report(found: readonly Found[]): Report {
  const rows = [...Object.keys(asked), bodyRow] as Row[];
  const parts = rows.map((row) => ({
    row,
    part: median(found.map((run) => run[row].ours / run[row].library)),
  }));
  const percent = (part: number): string => `${(part * 100).toFixed(0)} %`;
  const isMet = (row: Row, part: number): boolean => row === bodyRow || part >= bar;
  return {
    title: "Egress",
    method: [
      `${parallel} clients over raw sockets, ${sampleMs} ms each; the body is ${bodyBytes / 2 ** 20} MiB. Origin and proxies are processes of their own.`,
      "direct: no proxy. ours: an egress with its rules, judging every request. library: the Server of proxy-chain without hooks.",
    ],
    head: ["", ...names, "of library", "bar"],
    rows: parts.map(({ row, part }) => [
      row,
      ...names.map((name) => median(found.map((run) => run[row][name])).toFixed(0)),
      percent(part),
      row === bodyRow ? "" : isMet(row, part) ? "met" : "missed",
    ]),
    bars: parts
      .filter(({ row }) => row !== bodyRow)
      .map(({ row, part }) => ({
        what: `egress: at least ${bar * 100} % of the library's, ${row}`,
        is: percent(part),
        isMet: isMet(row, part),
      })),
  };
}
