import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Field } from "../../../src/telemetry/commands/fields.js";
import { reportedCommands } from "../../../src/telemetry/commands/methods.js";

const docs = readFileSync(join(import.meta.dirname, "../../../docs/telemetry.md"), "utf8");
const names = (fields: Readonly<Record<string, Field>>): string =>
  Object.entries(fields)
    .map(([name, { isRequired }]) => (isRequired ? `**\`${name}\`**` : `\`${name}\``))
    .join(", ");

test("docs/telemetry.md names every command that is reported, with its fields", () => {
  const rows = Object.entries(reportedCommands).map(([method, fields]) =>
    `| \`${method}\` | ${names(fields)} |`.replace("|  |", "| |"),
  );
  expect(docs.split("\n").filter((line) => /^\| `[A-Z]\w+\.\w+` \|/.test(line))).toEqual(rows);
});
