import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { leaves } from "../../src/config/settings.js";
import { helpText, settingsTable } from "../../src/config/table.js";

const page = readFileSync(join(import.meta.dirname, "../../docs/settings.md"), "utf8");

test("the table of docs/settings.md is the schema's (node scripts/bootstrap.mjs settings writes it)", () => {
  const block = /<!-- settings -->\n(.*)\n<!-- \/settings -->/s.exec(page)?.[1];
  expect(block).toBe(settingsTable());
});

test("the help names every setting with its unit and default", () => {
  for (const { path, setting } of leaves) {
    const entry =
      helpText().split(`  ${path.join(".")}\n`)[1] ?? helpText().split(`  ${path.join(".")}  [`)[1] ?? "";
    const until = entry.split("\n\n")[0]?.split("\n").slice(0, 3).join("\n") ?? "";
    expect([path.join("."), until.includes(setting.description), until.includes("default: ")]).toEqual([
      path.join("."),
      true,
      true,
    ]);
    if (setting.unit) expect(until).toContain(setting.unit);
  }
});
