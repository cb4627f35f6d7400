import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./sources.js";

const written = ["src", "test"].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.(ts|lua|mjs)$/.test(path))
    .map((path) => join(folder, path)),
);

/** Such a beginning has neither a subject nor a verb, and makes people read twice. */
const headless = /^\s*(?:\/\*\*|\/\/|\*|--+)\s+(?:Of|By|Whose|Under which|Among)\b/;

test("no comment begins in the middle of a sentence", () => {
  const found = written.flatMap((path) =>
    readFileSync(join(root, path), "utf8")
      .split("\n")
      .flatMap((line, at) => (headless.test(line) ? [`${path}:${at + 1} ${line.trim()}`] : [])),
  );
  expect(found).toEqual([]);
});

const comment = /^\s*(?:\/\*\*|\/\/|\*)/;
/** A directive has to stand in one line. */
const directive = /oxlint-disable/;

test("comments end within 110 columns, as the formatter sees to for code", () => {
  const found = written
    .filter((path) => path.endsWith(".ts"))
    .flatMap((path) =>
      readFileSync(join(root, path), "utf8")
        .split("\n")
        .flatMap((line, at) =>
          line.length > 110 && comment.test(line) && !directive.test(line) ? [`${path}:${at + 1}`] : [],
        ),
    );
  expect(found).toEqual([]);
});

test("each line of a Lua script ends within 110 columns", () => {
  const found = written
    .filter((path) => path.endsWith(".lua"))
    .flatMap((path) =>
      readFileSync(join(root, path), "utf8")
        .split("\n")
        .flatMap((line, at) => (line.length > 110 ? [`${path}:${at + 1}`] : [])),
    );
  expect(found).toEqual([]);
});
