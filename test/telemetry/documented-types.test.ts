import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { typesOfDaemons, typesOfPages, typesOfRefusals } from "../support/telemetry/corpus.js";

const docs = readFileSync(join(import.meta.dirname, "../../docs/telemetry.md"), "utf8");

/** The first cells of the tables whose header begins with `type`. */
const documented = [...docs.matchAll(/^\| type \|.*\n\|[ -|]+\n((?:\|.*\n)+)/gm)].flatMap(([, rows = ""]) =>
  rows
    .split("\n")
    .flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, type]) => type)),
);

test("the corpus causes every type that docs/telemetry.md names, and that names every type", () => {
  const caused = [...typesOfPages, ...typesOfDaemons, ...typesOfRefusals];
  expect(caused.toSorted()).toEqual(documented.toSorted());
});
