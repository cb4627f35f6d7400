import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Refusal, say } from "./say.mjs";

/** Writes the table of settings between its marks in README.md. */
export function writeSettings(root, { settingsTable }) {
  const file = join(root, "README.md");
  const text = readFileSync(file, "utf8");
  const block = /<!-- settings -->\n.*?<!-- \/settings -->/s;
  if (!block.test(text)) throw new Refusal("README.md has no <!-- settings --> block.");
  writeFileSync(file, text.replace(block, () => `<!-- settings -->\n${settingsTable()}\n<!-- /settings -->`));
  say("README.md: table of settings written");
  return 0;
}
