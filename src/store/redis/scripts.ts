import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { headOf, type Script } from "./script-call.js";

const folder = new URL("../lua/", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, folder), "utf8");

/** What a header says under `field`; it may go on in lines that are further in than prose is. */
export function headerField(source: string, field: "KEYS" | "ARGV" | "REPLY"): string {
  const lines = new RegExp(`^-- ${field} +(.*(?:\\n-- {3,}.*)*)`, "m").exec(source)?.[1] ?? "";
  return lines.replaceAll(/\n-- +/g, " ");
}

const wordsOf = (text: string): readonly string[] => text.split(/\s+/).filter((word) => word !== "");

/** What names an include stays. */
const withoutComments = (text: string): string => text.replaceAll(/^ *--(?!- @include ).*\n/gm, "");

const includes = new Map<string, string>();

/** Read once, since most commands have the same ones. */
function readInclude(name: string): string {
  const text = includes.get(name) ?? withoutComments(read(`include/${name}.lua`));
  includes.set(name, text);
  return text;
}

function withIncludes(source: string, included: Set<string>): string {
  return source.replaceAll(/^--- @include (\S+)$/gm, (_, name: string) => {
    if (included.has(name)) return "";
    included.add(name);
    return withIncludes(readInclude(name), included);
  });
}

/**
 * `K.name` and `A.name` become the places that the header gives them. A table of them, made anew by each
 * call, took a tenth of what an acquire costs Redis.
 */
function bound(text: string, { keys, args }: Pick<Script, "keys" | "args">): string {
  const placeOf = (name: string, names: readonly string[]): number => {
    const place = names.indexOf(name) + 1;
    if (place === 0) throw new Error(`the header does not declare ${name}`);
    return place;
  };
  return text.replaceAll(/\b([KA])\.(\w+)/g, (_, table: string, name: string) =>
    table === "K" ? `KEYS[${placeOf(name, keys)}]` : `ARGV[${placeOf(name, args)}]`,
  );
}

/** What each function calls, by its text, since most are in many commands. */
const namesIn = new Map<string, readonly string[]>();

/** What follows a dot is a field. */
function readNames(text: string): readonly string[] {
  const names = namesIn.get(text) ?? [...new Set(text.match(/(?<![.\w])[a-zA-Z]\w*/g))];
  namesIn.set(text, names);
  return names;
}

const topLevelFunction = /^local function (\w+)\((?:.*\bend|[^]*?\nend)\n/gm;

/**
 * Leaves out the functions of includes that the command never reaches: Redis keeps none from one call to the
 * next, and every call would make them all anew.
 */
function withoutUnreached(text: string): string {
  const functions = new Map<string, string>();
  const others = text.replaceAll(topLevelFunction, (body: string, name: string) => {
    functions.set(name, body);
    return "";
  });
  const reached = new Set<string>();
  const reach = (part: string): void => {
    for (const word of readNames(part)) {
      const body = functions.get(word);
      if (body === undefined || reached.has(word)) continue;
      reached.add(word);
      reach(body);
    }
  };
  reach(others);
  return text.replaceAll(topLevelFunction, (body, name: string) => (reached.has(name) ? body : ""));
}

type ScriptSource = Pick<Script, "name" | "path" | "keys" | "args"> & { readonly whole: string };

function compiled({ whole, ...about }: ScriptSource): Script {
  const text = bound(withoutUnreached(withoutComments(whole)), about);
  const sha = createHash("sha1").update(text).digest("hex");
  return { ...about, text, sha, head: headOf(about, "EVALSHA", sha) };
}

/** What the call of a command has besides where it is to judge an API key first (include/judged.lua). */
const judgement = {
  keys: ["keyDigests", "activeProjects", "callerRate"],
  args: ["digest", "project", "perMinute", "asker"],
};

/** Tells of the key's rate behind what the command answers. */
function judgedFirst(source: string): string {
  const included = new Set<string>();
  const [judged, command] = [withIncludes(readInclude("judged"), included), withIncludes(source, included)];
  return `${judged}local answer = (function()\n${command}\nend)()\nanswer[5] = rate\nreturn answer\n`;
}

function parseScript(path: string): Script {
  const name = path.replace(/^.*\//, "").slice(0, -".lua".length);
  const source = read(path);
  const [keys, args] = [wordsOf(headerField(source, "KEYS")), wordsOf(headerField(source, "ARGV"))];
  const script = compiled({ name, path, keys, args, whole: withIncludes(source, new Set()) });
  if (!/^--- @judged$/m.test(source)) return script;
  const more = { keys: [...keys, ...judgement.keys], args: [...args, ...judgement.args] };
  return { ...script, judged: compiled({ name, path, ...more, whole: judgedFirst(source) }) };
}

let loaded: ReadonlyMap<string, Script> | undefined;

/**
 * Every command of `lua/`, read once in a process, since that takes 20 ms of a processor. Throws where one
 * uses a name that its header does not declare.
 */
export const loadScripts = (): ReadonlyMap<string, Script> => (loaded ??= readScripts());

function readScripts(): ReadonlyMap<string, Script> {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (path) => path.endsWith(".lua") && !path.startsWith("include"),
  );
  const scripts = new Map(paths.map((path) => parseScript(path)).map((script) => [script.name, script]));
  // Nobody asks for them again.
  for (const kept of [includes, namesIn]) kept.clear();
  return scripts;
}
