import type { Kind, Pair } from "./control.js";
import { median, quantile } from "./support/figures.js";
import type { Sample } from "./support/load.js";
import type { Bar, Report } from "./support/report.js";

interface Demand {
  /** Part of the floor's cycles per second, at least. */
  readonly cycles: number;
  /** Multiple of the floor's p50, at most. */
  readonly p50?: number;
}
const demands: Readonly<Record<number, Demand>> = {
  1: { cycles: 0.5, p50: 2 },
  8: { cycles: 0.5, p50: 2 },
  32: { cycles: 0.4 },
};

type Figure = (sample: Sample) => number;
const cycles: Figure = ({ cyclesPerSecond }) => cyclesPerSecond;
const acquire =
  (part: number): Figure =>
  ({ acquires }) =>
    quantile(acquires, part);
const release =
  (part: number): Figure =>
  ({ releases }) =>
    quantile(releases, part);

const percent = (value: number): string => `${(value * 100).toFixed(0)} %`;

export function controlReport(pairs: readonly Pair[]): Report {
  const kinds: readonly Kind[] = ["no client", "a client"];
  const clients = [...new Set(pairs.map((pair) => pair.clients))];
  const rows = kinds.flatMap((kind) =>
    clients.map((count) => rowOf(pairs.filter((pair) => pair.kind === kind && pair.clients === count))),
  );
  return {
    title: "Control plane: acquire and release with fake browsers",
    method: [
      "Four browsers per client. The floor is the same Fastify without hooks and one acquire-like and one release-like script per cycle.",
      'Times in µs, daemon / floor. "no client": acquire and release in a row. "a client": each lease had a WebSocket client that came and went',
      "between acquire and release; all clients release and acquire again at once, which is timed, and are then visited, which is not; the floor alike, unvisited.",
      '"processor": what a cycle costs the daemon and Redis, visits and ticks included.',
    ],
    head: [
      "leases had",
      "clients",
      "cycles/s",
      "of floor",
      "acquire p50",
      "p99",
      "release p50",
      "p99",
      "processor",
      "bar",
    ],
    rows: rows.map(({ cells }) => cells),
    bars: rows.flatMap(({ bars }) => bars),
  };
}

function rowOf(pairs: readonly Pair[]): { cells: string[]; bars: readonly Bar[] } {
  const { kind = "no client", clients = 0 } = pairs[0] ?? {};
  const both = (figure: Figure): string =>
    [median(pairs.map(({ daemon }) => figure(daemon))), median(pairs.map(({ floor }) => figure(floor)))]
      .map((value) => value.toFixed(0))
      .join(" / ");
  const bars = barsOf(
    pairs,
    `control, ${kind}, ${clients} ${clients === 1 ? "client" : "clients"}`,
    demands[clients] ?? { cycles: 0 },
  );
  return {
    bars,
    cells: [
      kind,
      String(clients),
      both(cycles),
      percent(ratio(pairs, cycles)),
      both(acquire(0.5)),
      both(acquire(0.99)),
      both(release(0.5)),
      both(release(0.99)),
      [median(pairs.map(({ used }) => used.daemon)), median(pairs.map(({ used }) => used.redis))]
        .map((micros) => micros.toFixed(0))
        .join(" + "),
      bars.every(({ isMet }) => isMet) ? "met" : "missed",
    ],
  };
}

const ratio = (pairs: readonly Pair[], figure: Figure): number =>
  median(pairs.map(({ daemon, floor }) => figure(daemon) / figure(floor)));

function barsOf(pairs: readonly Pair[], where: string, demand: Demand): readonly Bar[] {
  const part = ratio(pairs, cycles);
  const perSecond = {
    what: `${where}: cycles/s at least ${percent(demand.cycles)} of the floor`,
    is: percent(part),
    isMet: part >= demand.cycles,
  };
  const { p50 } = demand;
  if (p50 === undefined) return [perSecond];
  const isWithin = (name: string, figure: Figure): Bar => {
    const multiple = ratio(pairs, figure);
    return {
      what: `${where}: p50 of ${name} at most ${p50} times the floor's`,
      is: `${multiple.toFixed(2)} times`,
      isMet: multiple <= p50,
    };
  };
  return [perSecond, isWithin("acquire", acquire(0.5)), isWithin("release", release(0.5))];
}
