import type { Row } from "../../support/faults/fault.js";

export interface Proved {
  readonly name: string;
  readonly outcome: "held" | "FAILED" | "not tried";
  readonly row?: Row;
}

const headings = ["fault", "", "what callers saw", "recovery"] as const;

/** The table of `npm run prove:faults`. */
export function tableOf(proved: readonly Proved[]): string {
  const rows = [
    headings,
    ...proved.map(
      ({ name, outcome, row }) => [name, outcome, row?.saw ?? "", timeOf(row?.recoveryMs)] as const,
    ),
  ];
  const widths = headings.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function timeOf(ms: number | undefined): string {
  if (ms === undefined) return "";
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
