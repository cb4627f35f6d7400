/**
 * Every series of ours in a scrape, for docs/metrics.md: a test holds the two equal. `scrape` is Prometheus's
 * text format.
 */
export function metricsTable(scrape: string): string {
  const types = new Map(
    [...scrape.matchAll(/^# TYPE (remuda_\w+) (\w+)$/gm)].map(([, name, type]) => [name, type]),
  );
  const rows = [...scrape.matchAll(/^# HELP (remuda_\w+) (.*)$/gm)].map(
    ([, name, help]) => `| \`${name}\` | ${types.get(name)} | ${help} |`,
  );
  return ["| name | type | meaning |", "| --- | --- | --- |", ...rows.toSorted()].join("\n");
}
