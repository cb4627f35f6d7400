/** What one part has found: a table, how it was measured, and what was asked of it. */
export interface Report {
  readonly title: string;
  readonly method: readonly string[];
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly bars: readonly Bar[];
}

export interface Bar {
  readonly what: string;
  /** What was found. */
  readonly is: string;
  readonly isMet: boolean;
}

export function textOf({ title, method, head, rows, bars }: Report): string {
  const verdicts = bars.map(({ what, is, isMet }) => `  ${isMet ? "met   " : "MISSED"}  ${what}: ${is}`);
  return [
    title,
    "=".repeat(title.length),
    ...method,
    "",
    ...tableOf([head, ...rows]),
    "",
    ...verdicts,
    "",
  ].join("\n");
}

/** The first column is text, the others are figures. */
function tableOf(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd();
  const [head = [], ...rest] = rows;
  return [line(head), widths.map((width) => "-".repeat(width)).join("  "), ...rest.map(line)];
}
