import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { moves } from "../../src/pool/browser.js";
import { loadScripts } from "../../src/store/scripts.js";

const scripts = [...loadScripts().values()];
const uses = (text: string, table: "K" | "A"): Set<string> =>
  new Set([...text.replaceAll(/--.*$/gm, "").matchAll(new RegExp(`\\b${table}\\.(\\w+)`, "g"))].map((found) => found[1] ?? ""));

test.each(scripts.map((script) => [script.name, script] as const))("%s uses just the keys and arguments its header declares", (_, script) => {
  const body = script.text.split("\n").slice(2).join("\n");
  expect([...uses(body, "K")].filter((key) => !script.keys.includes(key))).toEqual([]);
  expect(script.args.toSorted()).toEqual([...uses(body, "A")].toSorted());
  expect(script.keys.filter((key) => !uses(body, "K").has(key))).toEqual([]);
});

test.each(scripts.map((script) => [script.name, script] as const))("%s answers with the words its header names", (name) => {
  const read = (file: string): string => readFileSync(new URL(`../../src/store/lua/${file}.lua`, import.meta.url), "utf8");
  const own = read(name);
  const source = own.includes("--- @include repeats") ? own + read("include/repeats") : own;
  const declared = /^-- REPLY +(.*)$/m.exec(source)?.[1] ?? "";
  const words = new Set([...source.matchAll(/(?:plain|finish)\("([\w-]+)"/g)].map((found) => found[1] ?? ""));
  for (const [, word] of source.matchAll(/return \{ "([\w-]+)"/g)) words.add(word ?? "");
  for (const word of words) expect(declared).toMatch(new RegExp(`\\b${word}\\b`));
  const named = declared.replaceAll(/\([^)]*\)/g, "").split(",").map((text) => text.trim()).filter(Boolean);
  expect(named.toSorted()).toEqual([...words].toSorted());
});

test("the table of moves is the same in Lua and in TypeScript", () => {
  const lua = readFileSync(new URL("../../src/store/lua/include/moves.lua", import.meta.url), "utf8");
  const table = [...lua.matchAll(/^ {2}(\w+) = "(.*)",$/gm)].map(([, from, tos]) => [from, tos?.split(" ")]);
  expect(Object.fromEntries(table)).toEqual(moves);
});

test("every include is used", () => {
  const includes = readdirSync(new URL("../../src/store/lua/include/", import.meta.url)).map((file) => file.replace(".lua", ""));
  const files = [...scripts.map((script) => script.name), ...includes.map((name) => `include/${name}`)];
  const all = files.map((name) => readFileSync(new URL(`../../src/store/lua/${name}.lua`, import.meta.url), "utf8")).join("\n");
  for (const name of includes) expect(all).toMatch(new RegExp(`^--- @include ${name}$`, "m"));
});
