import { readFileSync } from "node:fs";

const lua = readFileSync(new URL("../../../src/store/lua/include/moves.lua", import.meta.url), "utf8");

/** The states that follow each state of a browser, as the scripts have them. */
export const browserMoves: ReadonlyMap<string, readonly string[]> = new Map(
  [...lua.matchAll(/^ {2}(\w+) = "(.*)",$/gm)].map(([, from = "", next = ""]) => [from, next.split(" ")]),
);
