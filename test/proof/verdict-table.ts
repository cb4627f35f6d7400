/** A row for each part of a proof: how many attempts came to each verdict, and what that says of the part. */
export function verdictTable<Part extends PartOfProof>(
  parts: readonly Part[],
  verdicts: readonly string[],
  verdictOf: (part: Part) => string,
): readonly string[] {
  const counted = ({ outcomes }: Part, wanted: string): number =>
    outcomes.filter(({ verdict }) => verdict === wanted).length;
  const rows = [
    ["", ...verdicts, ""],
    ...parts.map((part) => [
      part.title,
      ...verdicts.map((verdict) => String(counted(part, verdict))),
      verdictOf(part),
    ]),
  ];
  const width = Math.max(...rows.map(([title = ""]) => title.length));
  return rows.map(([title = "", ...cells]) =>
    `${title.padEnd(width)}  ${cells.map((cell) => cell.padStart(9)).join("  ")}`.trimEnd(),
  );
}

interface PartOfProof {
  readonly title: string;
  readonly outcomes: readonly { readonly verdict: string }[];
}
