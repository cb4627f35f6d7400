import type { SyntaxNode } from "@lezer/common";
import { parser } from "@prometheus-io/lezer-promql";
import type { Sample } from "./series.js";

/** Two scrapes, the later as long after the earlier as the ranges of the queries. */
export interface Scrapes {
  readonly earlier: readonly Sample[];
  readonly later: readonly Sample[];
}

/** A value of an answer, by its labels. */
export interface Answer {
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}
type Vector = readonly Answer[];

interface Asked {
  readonly query: string;
  readonly scrapes: Scrapes;
}

/** How long a range is that stands in a query, and how far apart scrapes are taken to be. */
const rangeSeconds = 300;

/**
 * What Prometheus answers the part of its language that the dashboard speaks; throws at any other. For each
 * of its queries that was compared with Prometheus 2.42, over two scrapes five minutes apart. A rate is the
 * difference of both scrapes, which is Prometheus's own where they stand at both ends of its range.
 */
export function evaluate(query: string, scrapes: Scrapes): Vector {
  const tree = parser.parse(query).topNode;
  const first = tree.firstChild;
  if (!first) throw new Error(`${query}: there is nothing in it`);
  const value = valueOf(first, { query, scrapes });
  return typeof value === "number" ? [{ labels: new Map(), value }] : value;
}

type Evaluate = (node: SyntaxNode, asked: Asked) => Vector | number;

const kinds: Readonly<Record<string, Evaluate>> = {
  NumberDurationLiteral: (node, asked) => Number(textOf(node, asked)),
  ParenExpr: (node, asked) => valueOf(childOf(node), asked),
  VectorSelector: (node, asked) => selected(node, asked, "later"),
  AggregateExpr: aggregated,
  FunctionCall: called,
  BinaryExpr: combined,
};

function valueOf(node: SyntaxNode, asked: Asked): Vector | number {
  const kind = kinds[node.name];
  if (!kind) throw new Error(`${asked.query}: ${node.name} is not evaluated here`);
  return kind(node, asked);
}

const textOf = ({ from, to }: SyntaxNode, { query }: Asked): string => query.slice(from, to);

function childOf(node: SyntaxNode, name?: string): SyntaxNode {
  const found = name === undefined ? node.firstChild : node.getChild(name);
  if (!found) throw new Error(`${node.name} has no ${name ?? "child"}`);
  return found;
}

function vectorOf(node: SyntaxNode, asked: Asked): Vector {
  const value = valueOf(node, asked);
  if (typeof value === "number") throw new Error(`${asked.query}: a vector is wanted at ${node.from}`);
  return value;
}

const matches: Readonly<Record<string, (value: string, wanted: string) => boolean>> = {
  EqlSingle: (value, wanted) => value === wanted,
  Neq: (value, wanted) => value !== wanted,
  EqlRegex: (value, wanted) => new RegExp(`^(?:${wanted})$`).test(value),
  NeqRegex: (value, wanted) => !new RegExp(`^(?:${wanted})$`).test(value),
};

/** One matcher of a selector; `operator` is its name in Prometheus's grammar. */
export interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly wanted: string;
}

export function matchersOf(selector: SyntaxNode, query: string): readonly Matcher[] {
  const found = selector.getChild("LabelMatchers")?.getChildren("UnquotedLabelMatcher") ?? [];
  return found.map((node) => ({
    label: query.slice(childOf(node, "LabelName").from, childOf(node, "LabelName").to),
    operator: childOf(childOf(node, "MatchOp")).name,
    wanted: JSON.parse(query.slice(childOf(node, "StringLiteral").from, childOf(node, "StringLiteral").to)),
  }));
}

function selected(node: SyntaxNode, asked: Asked, at: keyof Scrapes): Vector {
  const metric = textOf(childOf(node, "Identifier"), asked);
  const wanted = matchersOf(node, asked.query);
  const isMeant = ({ labels }: Sample): boolean =>
    wanted.every(({ label, operator, wanted: text }) => matches[operator]?.(labels.get(label) ?? "", text));
  return asked.scrapes[at].filter((sample) => sample.metric === metric && isMeant(sample));
}

const aggregates: Readonly<Record<string, (values: readonly number[]) => number>> = {
  Sum: (values) => values.reduce((sum, value) => sum + value, 0),
  Max: (values) => Math.max(...values),
};

function aggregated(node: SyntaxNode, asked: Asked): Vector {
  const operator = childOf(childOf(node, "AggregateOp")).name;
  const aggregate = aggregates[operator];
  if (!aggregate) throw new Error(`${asked.query}: ${operator} is not evaluated here`);
  const modifier = node.getChild("AggregateModifier");
  if (modifier && !modifier.getChild("By")) throw new Error(`${asked.query}: only "by" is evaluated here`);
  const names = modifier?.getChild("GroupingLabels")?.getChildren("LabelName") ?? [];
  const by = names.map((name) => textOf(name, asked));
  const inner = vectorOf(childOf(childOf(node, "FunctionCallBody")), asked);
  return [...groupedBy(inner, by).values()].map((group) => ({
    labels: only(group[0]?.labels ?? new Map(), by),
    value: aggregate(group.map(({ value }) => value)),
  }));
}

const only = (labels: Answer["labels"], names: readonly string[]): Answer["labels"] =>
  new Map(names.flatMap((name) => (labels.has(name) ? [[name, labels.get(name) ?? ""] as const] : [])));

const keyOf = (labels: Answer["labels"]): string => JSON.stringify([...labels].toSorted());

function groupedBy(vector: Vector, names?: readonly string[]): ReadonlyMap<string, readonly Answer[]> {
  const groups = new Map<string, Answer[]>();
  for (const each of vector) {
    const key = keyOf(names ? only(each.labels, names) : each.labels);
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return groups;
}

function called(node: SyntaxNode, asked: Asked): Vector {
  const name = childOf(childOf(node, "FunctionIdentifier")).name;
  const [first, second] = [
    childOf(node, "FunctionCallBody").firstChild,
    childOf(node, "FunctionCallBody").lastChild,
  ];
  if (!first || !second) throw new Error(`${asked.query}: ${name} has no arguments`);
  if (name === "Rate") return increased(first, asked, rangeSeconds);
  if (name === "Increase") return increased(first, asked, 1);
  if (name === "HistogramQuantile") return quantiles(Number(valueOf(first, asked)), vectorOf(second, asked));
  throw new Error(`${asked.query}: ${name} is not evaluated here`);
}

/** A series that was not there at the earlier scrape has nothing to be compared with. */
function increased(node: SyntaxNode, asked: Asked, per: number): Vector {
  const selector = childOf(node, "VectorSelector");
  const earlier = groupedBy(selected(selector, asked, "earlier"));
  return selected(selector, asked, "later").flatMap(({ labels, value }) => {
    const [before] = earlier.get(keyOf(labels)) ?? [];
    if (!before) return [];
    // A counter that has gone back was begun anew.
    return [{ labels, value: (value < before.value ? value : value - before.value) / per }];
  });
}

function quantiles(quantile: number, buckets: Vector): Vector {
  const without = buckets.map(({ labels }) => new Map([...labels].filter(([name]) => name !== "le")));
  const groups = new Map<string, { labels: Answer["labels"]; buckets: Bucket[] }>();
  for (const [place, { labels, value }] of buckets.entries()) {
    const rest = without[place] ?? new Map<string, string>();
    const group = groups.get(keyOf(rest)) ?? { labels: rest, buckets: [] };
    group.buckets.push({ end: Number((labels.get("le") ?? "").replace("+Inf", "Infinity")), count: value });
    groups.set(keyOf(rest), group);
  }
  return [...groups.values()].map((group) => ({
    labels: group.labels,
    value: quantileOf(
      quantile,
      group.buckets.toSorted((one, other) => one.end - other.end),
    ),
  }));
}

interface Bucket {
  readonly end: number;
  readonly count: number;
}

/** Linear within a bucket; of what is above the last bound, that bound. */
function quantileOf(quantile: number, buckets: readonly Bucket[]): number {
  const all = buckets.at(-1)?.count ?? 0;
  if (all === 0) return NaN;
  const rank = quantile * all;
  const at = buckets.findIndex(({ count }) => count >= rank);
  const [before, bucket] = [buckets[at - 1] ?? { end: 0, count: 0 }, buckets[at] ?? { end: NaN, count: 0 }];
  if (bucket.end === Infinity) return before.end;
  return before.end + ((bucket.end - before.end) * (rank - before.count)) / (bucket.count - before.count);
}

const operators: Readonly<Record<string, (left: number, right: number) => number>> = {
  Sub: (left, right) => left - right,
  Div: (left, right) => left / right,
};

/** A number with a vector, or two vectors whose labels are the same. */
function combined(node: SyntaxNode, asked: Asked): Vector | number {
  const [left, operator, right] = [node.firstChild, node.firstChild?.nextSibling, node.lastChild];
  const operate = operators[operator?.name ?? ""];
  if (!left || !right || !operate) throw new Error(`${asked.query}: ${operator?.name} is not evaluated here`);
  const [one, other] = [valueOf(left, asked), valueOf(right, asked)];
  if (typeof one === "number" && typeof other === "number") return operate(one, other);
  if (typeof one === "number" && typeof other !== "number")
    return other.map(({ labels, value }) => ({ labels, value: operate(one, value) }));
  if (typeof one === "number" || typeof other === "number")
    throw new Error(`${asked.query}: a number stands on the right`);
  const others = groupedBy(other);
  return one.flatMap(({ labels, value }) =>
    (others.get(keyOf(labels)) ?? []).map((match) => ({ labels, value: operate(value, match.value) })),
  );
}
