import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { browserStates } from "../../../src/pool/browser.js";
import { browserMoves } from "../../support/store/browser-moves.js";
import { parseReply, replyWords } from "../../../src/store/redis/replies.js";
import { headerField, loadScripts } from "../../../src/store/redis/scripts.js";

const whole = [...loadScripts().values()];
/** Those that judge an API key first are scripts of their own. */
const scripts = whole.flatMap((script) => (script.judged ? [script, script.judged] : [script]));
const places = (text: string, table: "KEYS" | "ARGV"): number[] =>
  [
    ...new Set(
      [...text.matchAll(new RegExp(`\\b${table}\\[(\\d+)\\]`, "g"))].map((found) => Number(found[1])),
    ),
  ].toSorted((one, other) => one - other);
const placesOf = (names: readonly string[]): number[] => names.map((_, index) => index + 1);

test.each(scripts.map((script) => [script.name, script] as const))(
  "%s uses just the keys and arguments its header declares",
  (_, script) => {
    // One that is not declared has no place: the script is not even loaded.
    expect(script.text).not.toMatch(/\b[KA]\./);
    expect(places(script.text, "KEYS")).toEqual(placesOf(script.keys));
    expect(places(script.text, "ARGV")).toEqual(placesOf(script.args));
  },
);

const mentionsOf = (name: string): RegExp => new RegExp(`(?<![.\\w])${name}\\b`, "g");
const functionsIn = (text: string): readonly string[] =>
  [...text.matchAll(/^local function (\w+)\(/gm)].map(([, name = ""]) => name);
const luaFolder = new URL("../../../src/store/lua/", import.meta.url);
const includes = readdirSync(new URL("include/", luaFolder), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".lua"))
  .map((file) => file.replace(".lua", ""));
const included = includes.flatMap((name) =>
  functionsIn(readFileSync(new URL(`include/${name}.lua`, luaFolder), "utf8")),
);

test.each(scripts.map((script) => [script.name, script] as const))(
  "%s is sent with every function that it calls, and with no other",
  (_, { text }) => {
    const sent = functionsIn(text);
    expect(sent).toEqual([...new Set(sent)]);
    expect(sent.filter((name) => (text.match(mentionsOf(name)) ?? []).length < 2)).toEqual([]);
    expect(included.filter((name) => mentionsOf(name).test(text) && !sent.includes(name))).toEqual([]);
  },
);

test.each(scripts.map((script) => [script.name, script] as const))(
  "%s answers with the words its header names",
  (script, { path, text }) => {
    const declared = headerField(readFileSync(new URL(path, luaFolder), "utf8"), "REPLY");
    // Those of functions that it shares with others are its own too; that of a judgement is everybody's.
    const words = new Set([...text.matchAll(/(?:plain|finish)\("([\w-]+)"/g)].map((found) => found[1] ?? ""));
    for (const [, word] of text.matchAll(/return \{ "([\w-]+)"/g)) words.add(word ?? "");
    words.delete("unjudged");
    for (const word of words) expect(declared).toMatch(new RegExp(`\\b${word}\\b`));
    const named = declared
      .replaceAll(/\([^)]*\)/g, "")
      .split(",")
      .map((word) => word.trim())
      .filter(Boolean);
    expect(named.toSorted()).toEqual([...words].toSorted());
    expect(Object.entries(replyWords).find(([name]) => name === script)?.[1]).toEqual(named);
  },
);

test.each(whole.map((script) => [script.name, script] as const))(
  "%s has the keys last that each call has anew, so that those before are written out once",
  (_, { keys }) => {
    const ofOneCall = ["answer", "idempotency", "callerRate"];
    const first = keys.findIndex((key) => ofOneCall.includes(key));
    expect(keys.slice(first < 0 ? keys.length : first).filter((key) => !ofOneCall.includes(key))).toEqual([]);
  },
);

test("the replies of just those scripts are known that there are", () => {
  expect(Object.keys(replyWords).toSorted()).toEqual(whole.map(({ name }) => name).toSorted());
  expect(() => parseReply("release", ["released by nobody", "", "1", ""])).toThrow("script release answered");
});

test("the table of moves has each state of a browser, and no move leads elsewhere", () => {
  expect([...browserMoves.keys()].toSorted()).toEqual([...browserStates].toSorted());
  const known = new Set<string>([...browserStates, "gone"]);
  expect([...browserMoves.values()].flat().filter((state) => !known.has(state))).toEqual([]);
});

test("every include is used", () => {
  const files = [...scripts.map((script) => script.path), ...includes.map((name) => `include/${name}.lua`)];
  const all = files.map((name) => readFileSync(new URL(name, luaFolder), "utf8")).join("\n");
  for (const name of includes) expect(all).toMatch(new RegExp(`^--- @(?:include )?${name}$`, "m"));
});
