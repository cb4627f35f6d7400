/** One series at one scrape. */
export interface Sample {
  readonly metric: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

/** What Prometheus adds to every series that it scrapes. */
const added: readonly (readonly [string, string])[] = [
  ["job", "remuda"],
  ["instance", "127.0.0.1:4700"],
];

/** The samples in Prometheus's text format, as Prometheus keeps them. */
export function samplesIn(text: string): readonly Sample[] {
  return text.split("\n").flatMap((line) => {
    const [, metric, labels = "", value = ""] = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line) ?? [];
    if (metric === undefined) return [];
    const own = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
      ([, name = "", quoted = ""]) => [name, quoted] as const,
    );
    return [{ metric, labels: new Map([...own, ...added]), value: numberOf(value) }];
  });
}

const numberOf = (text: string): number => Number(text.replace(/Inf$/, "Infinity").replace("Nan", "NaN"));

/** The labels of each series in Prometheus's text format; none where there was nothing to count yet. */
export function seriesIn(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const series = new Map<string, Set<string>>();
  for (const line of text.split("\n")) {
    const [, described, type] = /^# TYPE (\S+) (\S+)/.exec(line) ?? [];
    const parts = type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
    for (const part of described === undefined ? [] : parts) series.set(`${described}${part}`, new Set());
    const [, name = "", labels = ""] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? [];
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) series.get(name)?.add(label);
  }
  return series;
}
