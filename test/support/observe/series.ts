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
