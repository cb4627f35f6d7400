import { groupBy } from "../../../src/base/group-by.js";
import type { Pair, Sample } from "../access.js";
import { median } from "../support/figures.js";
import type { Bar, Report } from "../support/report.js";

const percent = (value: number): string => `${(value * 100).toFixed(0)} %`;

export function accessReport(pairs: readonly Pair[]): Report {
  const groups = groupBy(pairs, ({ what, clients }) => `${what} ${clients}`);
  const rows = [...groups.values()].map((group) => rowOf(group));
  return {
    title: "Who may do what: requests that are looked up, held to limits and checked",
    method: [
      "Beside the root key on a daemon without projects, limits and audit log. A project's key: on a daemon with projects, with limits on",
      "browsers, rates for requests and creations, and the audit log. Pools are closed to keys with a policy, so such a key launches browsers",
      "on demand. The last row compares two daemons without limits, both with the log: one with 100,000 keys, and one with a single key.",
      "At 1 in flight nothing hides that a look-up is a round trip: there is no bar there.",
      '"processor": of the daemon and of Redis, in µs a turn, checked / plain.',
    ],
    head: ["what", "clients", "turns/s", "of plain", "processor: daemon", "Redis", "bar"],
    rows: rows.map(({ cells }) => cells),
    bars: rows.flatMap(({ bars }) => bars),
  };
}

function rowOf(pairs: readonly Pair[]): { cells: string[]; bars: readonly Bar[] } {
  const { what = "", clients = 0, bar } = pairs[0] ?? {};
  const both = (figure: (sample: Sample) => number): string =>
    [median(pairs.map(({ checked }) => figure(checked))), median(pairs.map(({ plain }) => figure(plain)))]
      .map((value) => value.toFixed(0))
      .join(" / ");
  const part = median(pairs.map(({ checked, plain }) => checked.turnsPerSecond / plain.turnsPerSecond));
  const bars = bar === undefined ? [] : [barOf({ what, clients, bar, part })];
  const cells = [
    what,
    String(clients),
    both(({ turnsPerSecond }) => turnsPerSecond),
    percent(part),
    both(({ used }) => used.daemon),
    both(({ used }) => used.redis),
    bars.map(({ isMet }) => (isMet ? "met" : "missed")).join(),
  ];
  return { cells, bars };
}

const barOf = (of: { what: string; clients: number; bar: number; part: number }): Bar => ({
  what: `access, ${of.what}, ${of.clients} in flight: turns/s at least ${percent(of.bar)}`,
  is: percent(of.part),
  isMet: of.part >= of.bar,
});
