import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";

/** One Lua command: its header is its contract, and what binds its keys and arguments. */
export interface Script {
  readonly name: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly text: string;
  /** SHA-1 of the text: what `EVALSHA` names it by, so that two releases can share one Redis. */
  readonly sha: string;
}

const folder = new URL("./lua/", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, folder), "utf8");

function header(source: string, field: "KEYS" | "ARGV"): readonly string[] {
  const line = new RegExp(`^-- ${field} +(.*)$`, "m").exec(source)?.[1] ?? "";
  return line.split(/\s+/).filter((word) => word !== "");
}

function withIncludes(source: string, included: Set<string>): string {
  return source.replaceAll(/^--- @include (\S+)$/gm, (_, name: string) => {
    if (included.has(name)) return "";
    included.add(name);
    return withIncludes(read(`include/${name}.lua`), included);
  });
}

const bind = (table: "K" | "A", source: "KEYS" | "ARGV", names: readonly string[]): string =>
  `local ${table} = { ${names.map((name, index) => `${name} = ${source}[${index + 1}]`).join(", ")} }\n`;

function parseScript(name: string): Script {
  const source = read(`${name}.lua`);
  const keys = header(source, "KEYS");
  const args = header(source, "ARGV");
  const text = bind("K", "KEYS", keys) + bind("A", "ARGV", args) + withIncludes(source, new Set());
  return { name, keys, args, text, sha: createHash("sha1").update(text).digest("hex") };
}

/** Reads every command of `lua/`. The names bound at its head are those its header declares. */
export function loadScripts(): ReadonlyMap<string, Script> {
  const names = readdirSync(folder).filter((file) => file.endsWith(".lua")).map((file) => file.slice(0, -".lua".length));
  return new Map(names.map((name) => [name, parseScript(name)]));
}
