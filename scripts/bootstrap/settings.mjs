import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Refusal, say } from "./say.mjs";

/** Puts a table between the marks of its name in a page of docs/. */
function writeTable(root, name, table) {
  const page = `docs/${name}.md`;
  const text = readFileSync(join(root, page), "utf8");
  const block = new RegExp(`<!-- ${name} -->\\n.*?<!-- /${name} -->`, "s");
  if (!block.test(text)) throw new Refusal(`${page} has no <!-- ${name} --> block.`);
  writeFileSync(
    join(root, page),
    text.replace(block, () => `<!-- ${name} -->\n${table}\n<!-- /${name} -->`),
  );
  say(`${page}: table written`);
}

/** Writes the tables of settings, errors and metrics into their pages. */
export function writeTables(root, { settings, errors, metrics }) {
  writeTable(root, "settings", settings);
  writeTable(root, "errors", errors);
  writeTable(root, "metrics", metrics);
  return 0;
}
