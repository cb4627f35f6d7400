import type { SyntaxNode } from "@lezer/common";
import { parser } from "@prometheus-io/lezer-promql";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { Metrics } from "../../src/observe/metrics.js";
import { scalingOf } from "../../src/pool/scaling.js";
import { type FakeChromium, makeFakeChromium, standIn } from "../support/browser/chromium-fake.js";
import { type Daemon, type Lease, startDaemon } from "../support/daemon/daemon.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { makeLogBook, send } from "../support/http/http-server.js";
import { evaluate, matchersOf, type Scrapes } from "../support/observe/promql.js";
import { samplesIn, seriesIn } from "../support/observe/series.js";

interface Panel {
  readonly title: string;
  readonly description?: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}
interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}

const root = join(import.meta.dirname, "../..");
const file = join(root, "k8s/grafana-dashboard.json");
const dashboard = JSON.parse(readFileSync(file, "utf8")) as Dashboard;
const panels = dashboard.panels.filter(({ targets }) => targets !== undefined);
const queries = panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })));

/** Series of `/metrics` that no panel shows, and why not. */
const leftOut: ReadonlyMap<string, string> = new Map();

/** Prometheus adds these to every series. */
const addedByPrometheus = ["job", "instance"];

/** Grafana puts a duration in its place before Prometheus sees the query. */
const asPrometheusReadsIt = (expr: string): string => expr.replaceAll("$__rate_interval", "5m");

interface Selected {
  readonly metric: string;
  /** Labels by which it is chosen, or by which the sum around it is grouped. */
  readonly labels: readonly string[];
}

/** The metrics that a query reads; fails where Prometheus's own grammar does not know it. */
function metricsOf(query: string): readonly Selected[] {
  const expr = asPrometheusReadsIt(query);
  const textOf = ({ from, to }: { from: number; to: number }): string => expr.slice(from, to);
  const selected: Selected[] = [];
  parser.parse(expr).iterate({
    enter({ name, type, node }) {
      if (type.isError) throw new Error(`${query}: not PromQL at ${node.from}`);
      if (name !== "VectorSelector") return;
      const own = node.getChild("LabelMatchers")?.getChildren("UnquotedLabelMatcher") ?? [];
      const labels = [...own, ...groupingsAround(node)].flatMap((each) => each.getChildren("LabelName"));
      const metric = node.getChild("Identifier");
      selected.push({ metric: metric ? textOf(metric) : "", labels: labels.map(textOf) });
    },
  });
  return selected;
}

/** An aggregation hands on no labels but those it groups by. */
function groupingsAround(node: SyntaxNode): readonly SyntaxNode[] {
  const found: SyntaxNode[] = [];
  for (let at = node.parent; at; at = at.parent)
    found.push(...(at.getChild("AggregateModifier")?.getChildren("GroupingLabels") ?? []));
  return found;
}

/** A `Metrics` that counts nothing yet, and how everything is counted there once. */
function synthetic() {
  const metrics = new Metrics({
    clock: systemClock,
    log: makeLogBook().log,
    aheadMs: async () => 0,
    gauges: {
      pools: async () => [{ pool: "herd", states: { idle: 1 }, waiting: 0 }],
      nodes: async () => [{ state: "ready", count: 1 }],
      exports: async () => [{ destination: "bucket", lagMs: 1, failures: 0 }],
      scaling: async () => scalingOf([], []),
      standby: async () => ({ idle: 2, launching: 1 }),
    },
  });
  const countAll = (): void => {
    metrics.acquired("herd", "granted", 1);
    metrics.launched("herd");
    metrics.launchFailed("herd", "launch");
    metrics.leaseEnded("herd", "released");
    metrics.scaling.held("herd", 1);
    metrics.carried("to_client", 1);
    metrics.refused("gone");
    metrics.asked("herd", "direct", 1);
    metrics.denied("herd", "rule", 1);
    metrics.passed("herd", "sent", 1);
    metrics.opened("proxy");
    metrics.node.profileSaved("saved");
    metrics.node.limitPassed("memory_exceeded");
    metrics.node.standbyEnded(1);
    metrics.node.memoryLeft(1);
    metrics.standby.asked("taken");
    metrics.audit.lost("store", 1);
    metrics.epochs.recovered({ pools: 1, browsers: 1, leases: 1 });
    metrics.exports.failed("write");
    metrics.telemetry.lost("too_many", 1);
    metrics.telemetry.exportLost("failed", 1);
  };
  return { metrics, countAll };
}

/** What a caller does in a minute: a browser is leased, driven and given back, and a command refused. */
async function drive(daemon: Daemon): Promise<void> {
  const acquire = async (): Promise<Lease> =>
    (await daemon.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 60 })).body as Lease;
  const given = await acquire();
  const client = await connectRaw(given.cdp_ws_url);
  await client.send("Browser.getVersion");
  await client.send("Browser.crash");
  await client.close();
  await daemon.call("POST /browser_pools/herd/release", { session_id: given.session_id });
  await daemon.poolWhen("herd", ({ available_count }) => available_count === 2);
}

let fake: FakeChromium;
let daemon: Daemon;
let shown: ReadonlyMap<string, ReadonlySet<string>>;
let labelled: ReadonlyMap<string, ReadonlySet<string>>;
/** What the driven daemon shows, and the synthetic one. */
let driven: Scrapes;
let counted: Scrapes;
beforeAll(async () => {
  fake = await makeFakeChromium();
  daemon = await startDaemon({ file: standIn(fake) });
  await daemon.makePool({ name: "herd", size: 3 });
  const leased = await daemon.call("POST /browser_pools/herd/acquire", {});
  const held = await connectRaw((leased.body as Lease).cdp_ws_url);
  await drive(daemon);
  const earlier = await scrape();
  await drive(daemon);
  const later = await scrape();
  await held.close();
  shown = seriesIn(later);
  driven = { earlier: samplesIn(earlier), later: samplesIn(later) };
  const { metrics, countAll } = synthetic();
  countAll();
  const first = await metrics.text();
  countAll();
  const second = await metrics.text();
  labelled = seriesIn(second);
  counted = { earlier: samplesIn(first), later: samplesIn(second) };
});
const scrape = async (): Promise<string> => (await send(`${daemon.url}/metrics`)).text;
afterAll(async () => {
  await daemon.stop();
  await fake.remove();
});

test("every query is PromQL, and each metric that it names is in a daemon's /metrics", () => {
  const named = queries.flatMap(({ title, expr }) =>
    metricsOf(expr).map(({ metric }) => ({ title, metric })),
  );
  expect(named.filter(({ metric }) => !shown.has(metric))).toEqual([]);
  expect(queries.filter(({ expr }) => metricsOf(expr).length === 0)).toEqual([]);
});

test("each label by which a query chooses or groups is one of the metric's", () => {
  const unknown = queries.flatMap(({ title, expr }) =>
    metricsOf(expr).flatMap(({ metric, labels }) =>
      labels
        .filter((label) => !addedByPrometheus.includes(label) && !labelled.get(metric)?.has(label))
        .map((label) => `${title}: ${metric} has no ${label}`),
    ),
  );
  expect(unknown).toEqual([]);
});

test("a legend names nothing but labels that its query leaves", () => {
  const unknown = queries.flatMap(({ title, expr, legendFormat }) => {
    const left = new Set(
      metricsOf(expr).flatMap(({ metric, labels }) => [
        ...labels,
        ...(/\bby\b/.test(expr) ? [] : [...(labelled.get(metric) ?? []), ...addedByPrometheus]),
      ]),
    );
    return [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)]
      .filter(([, label = ""]) => !left.has(label))
      .map(([text]) => `${title}: ${text}`);
  });
  expect(unknown).toEqual([]);
});

/** What pages and examples tell an operator to watch: a metric, and labels by which it is chosen. */
const documented = ["docs", "k8s/examples"].flatMap((folder) =>
  readdirSync(join(root, folder)).flatMap((name) =>
    [
      ...readFileSync(join(root, folder, name), "utf8").matchAll(/\b(remuda_[a-z_]+)(?:\{(\w+)="(\w+)"\})?/g),
    ].map(([, metric = "", label, word]) => ({ name, metric, label, word })),
  ),
);

test("each metric that a page or an example names is in a daemon's /metrics, with the label that it is chosen by", () => {
  expect(documented.length).toBeGreaterThan(30);
  const isShown = (metric: string): boolean => shown.has(metric) || shown.has(`${metric}_bucket`);
  expect(documented.filter(({ metric }) => !isShown(metric))).toEqual([]);
  const chosen = documented.filter(({ label }) => label !== undefined);
  expect(chosen.length).toBeGreaterThan(0);
  const isWord = ({ metric, label = "", word }: (typeof documented)[number]): boolean =>
    driven.later.some((sample) => sample.metric === metric && sample.labels.get(label) === word);
  expect(chosen.filter((each) => !isWord(each))).toEqual([]);
});

test("every metric of /metrics is in a panel, or left out for a reason", () => {
  const used = new Set(queries.flatMap(({ expr }) => metricsOf(expr).map(({ metric }) => metric)));
  expect([...shown.keys()].filter((name) => !used.has(name) && !leftOut.has(name))).toEqual([]);
  expect([...leftOut.keys()].filter((name) => !shown.has(name) || used.has(name))).toEqual([]);
});

test("the variables choose among labels that there are, and each panel says what it means", () => {
  const variables = new Map(dashboard.templating.list.map(({ name, definition }) => [name, definition]));
  expect(variables.get("pool")).toBe("label_values(remuda_pool_browsers, pool)");
  expect(labelled.get("remuda_pool_browsers")).toContain("pool");
  const asked = queries.flatMap(({ expr }) => [...expr.matchAll(/\$(\w+)/g)].map(([, name = ""]) => name));
  expect(asked.filter((name) => name !== "__rate_interval" && !variables.has(name))).toEqual([]);
  expect(panels.filter(({ description = "" }) => description.length < 20)).toEqual([]);
});

test("what the test counts is what a daemon shows", () => {
  expect([...labelled.keys()].toSorted()).toEqual([...shown.keys()].toSorted());
});

/** What Grafana makes of a query before Prometheus sees it, all pools being chosen. */
const asked = (expr: string): string =>
  asPrometheusReadsIt(expr).replaceAll("$pool", ".*").replaceAll("$job", ".*");

const answersIn = (expr: string, scrapes: Scrapes): readonly number[] =>
  evaluate(asked(expr), scrapes)
    .map(({ value }) => value)
    .filter(Number.isFinite);

/** What a daemon shows that was driven by `drive` alone; for the rest each count is made once. */
const shownByDriving =
  /^(?:process|nodejs|remuda_(?:pool|acquire_wait|launches|leases_ended|nodes|gateway|store_up|event_loop|clock_ahead|audit_entries_total|egress_browsers))/;

test("each query has an answer in what a driven daemon shows, or where everything was counted", () => {
  const isDriven = (expr: string): boolean =>
    metricsOf(expr).every(({ metric }) => shownByDriving.test(metric));
  const silent = queries.filter(
    ({ expr }) => answersIn(expr, isDriven(expr) ? driven : counted).length === 0,
  );
  expect(silent.map(({ title, expr }) => `${title}: ${expr}`)).toEqual([]);
});

/** Matchers whose value is no variable of the dashboard. */
function wordsOf(query: string): readonly { metric: string; label: string; words: readonly string[] }[] {
  const found: { metric: string; label: string; words: readonly string[] }[] = [];
  parser.parse(query).iterate({
    enter({ name, node }) {
      if (name !== "VectorSelector") return;
      const metric = /^\w+/.exec(query.slice(node.from, node.to))?.[0] ?? "";
      for (const { label, operator, wanted } of matchersOf(node, query))
        if (!wanted.startsWith("$"))
          found.push({ metric, label, words: operator.endsWith("Regex") ? wanted.split("|") : [wanted] });
    },
  });
  return found;
}

test("each word by which a query chooses is one that a daemon shows", () => {
  const words = queries.flatMap(({ expr }) => wordsOf(asPrometheusReadsIt(expr)));
  expect(words.length).toBeGreaterThan(5);
  const isShown = (metric: string, label: string, word: string): boolean =>
    driven.later.some((sample) => sample.metric === metric && sample.labels.get(label) === word);
  const unknown = words.flatMap(({ metric, label, words: all }) =>
    all.filter((word) => !isShown(metric, label, word)).map((word) => `${metric} ${label}=${word}`),
  );
  expect(unknown).toEqual([]);
});

test.each([
  ["idle", 2],
  ["leased", 1],
])("%s browsers are as many as there are", (legend, count) => {
  const [query] = queries.filter(({ legendFormat }) => legendFormat === legend);
  expect(answersIn(query?.expr ?? "", driven)).toEqual([count]);
});
