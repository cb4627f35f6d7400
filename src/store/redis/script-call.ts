import { Command } from "ioredis";

/** One Lua command: its header is its contract, and what binds its keys and arguments. */
export interface Script {
  readonly name: string;
  /** The path below lua/, such as `lease/acquire.lua`. */
  readonly path: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly text: string;
  /** SHA-1 of the text: what `EVALSHA` names it by, so that two releases can share one Redis. */
  readonly sha: string;
  /** How each call of it begins. */
  readonly head: string;
  /** The same command where it is to judge an API key first. */
  readonly judged?: Script;
}

/** What a script is given, by the names in its header. */
export type ScriptArgs = Readonly<Record<string, string | number>>;
export type KeyOf = (key: string) => string;

/** One argument as it goes over the wire (redis.io, "Redis serialization protocol specification"). */
const written = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;

/**
 * The keys that are the same in many calls, such as those of one partition: written out once for each script.
 * They stand first in a script's header; `keyOf` gives undefined from the first on that is a call's own.
 */
export class SharedKeys {
  readonly #written = new Map<Script, WrittenKeys>();

  constructor(private readonly keyOf: (key: string) => string | undefined) {}

  of(script: Script): WrittenKeys {
    const kept = this.#written.get(script);
    if (kept) return kept;
    const { keys } = script;
    const end = keys.findIndex((key) => this.keyOf(key) === undefined);
    const shared = keys.slice(0, end < 0 ? keys.length : end).map((key) => this.keyOf(key) ?? "");
    const made = { count: shared.length, first: shared[0], text: shared.map(written).join("") };
    this.#written.set(script, made);
    return made;
  }
}
interface WrittenKeys {
  readonly count: number;
  readonly first: string | undefined;
  readonly text: string;
}
const nothingShared: WrittenKeys = { count: 0, first: undefined, text: "" };

/** Arguments that are the same in all calls, such as limits: written out once for each script. */
export class SharedArgs {
  readonly #written = new Map<Script, readonly (string | undefined)[]>();

  constructor(private readonly args: ScriptArgs) {}

  of(script: Script): readonly (string | undefined)[] {
    const kept = this.#written.get(script);
    if (kept) return kept;
    const values = script.args.map((arg) => this.args[arg]);
    const made = values.map((value) => (value === undefined ? undefined : written(String(value))));
    this.#written.set(script, made);
    return made;
  }
}
const nothingGiven = new SharedArgs({});

/** What one call of a script is given. */
export interface CallParts {
  readonly keys: { readonly shared?: SharedKeys; readonly keyOf: KeyOf };
  readonly args: ScriptArgs;
  /** Gives the arguments that `args` does not have. */
  readonly sharedArgs?: SharedArgs;
}

/**
 * What a command that judges an API key is given besides (lua/include/judged.lua): the same for each request
 * with that key, so it is written out once.
 */
export class KeyJudgement {
  readonly keys: string;
  readonly args: string;

  constructor(keys: readonly string[], args: readonly string[]) {
    this.keys = keys.map(written).join("");
    this.args = args.map(written).join("");
  }
}

/** A call of a script, written out. */
export interface ScriptCall {
  readonly script: Script;
  /** The key by which a cluster finds the node that is asked. */
  readonly key: string | undefined;
  /** All that is sent, joined once: a text that grows piece by piece is copied once more when it is sent. */
  readonly text: string;
}

export function makeCall(script: Script, parts: CallParts): ScriptCall {
  const pieces = [script.head];
  const key = addKeys(pieces, script, parts);
  addArgs(pieces, script, parts);
  return { script, key, text: pieces.join("") };
}

/** The same of the command that judges an API key first; `asker` is who asks. */
export function makeJudgedCall(
  script: Script,
  parts: CallParts,
  { judgement, asker }: { readonly judgement: KeyJudgement; readonly asker: string },
): ScriptCall {
  const { judged } = script;
  if (!judged) throw new Error(`script ${script.name} judges nobody`);
  const pieces = [judged.head];
  const key = addKeys(pieces, script, parts);
  pieces.push(judgement.keys);
  addArgs(pieces, script, parts);
  pieces.push(judgement.args);
  addText(pieces, asker);
  return { script: judged, key, text: pieces.join("") };
}

const addText = (pieces: string[], text: string): void =>
  void pieces.push(`$${Buffer.byteLength(text)}\r\n`, text, "\r\n");

/** Gives the first of them. */
function addKeys(pieces: string[], script: Script, { keys }: CallParts): string | undefined {
  const { count, first, text } = keys.shared?.of(script) ?? nothingShared;
  pieces.push(text);
  let key = first;
  for (let at = count; at < script.keys.length; at += 1) {
    const own = keys.keyOf(script.keys[at] ?? "");
    key ??= own;
    addText(pieces, own);
  }
  return key;
}

/** Throws where an argument is missing that the header names. */
function addArgs(pieces: string[], script: Script, { args, sharedArgs = nothingGiven }: CallParts): void {
  const given = sharedArgs.of(script);
  for (let at = 0; at < script.args.length; at += 1) {
    const name = script.args[at] ?? "";
    const own = args[name];
    const shared = given[at];
    if (own !== undefined) addText(pieces, String(own));
    else if (shared !== undefined) pieces.push(shared);
    else throw new Error(`script ${script.name} was not given ${name}`);
  }
}

/**
 * The client would flatten, check and measure each key and argument of each call anew, which cost more than
 * all else that it does for one.
 */
class WrittenCommand extends Command {
  constructor(
    name: string,
    private readonly call: Pick<ScriptCall, "key" | "text">,
  ) {
    super(name, [], { replyEncoding: "utf8" });
  }

  override toWritable(): string {
    return this.call.text;
  }

  override getKeys(): string[] {
    return this.call.key === undefined ? [] : [this.call.key];
  }
}

/** Names the script by its digest. */
export const byDigest = (call: ScriptCall): Command => new WrittenCommand("evalsha", call);

/** Sends its text along, for a Redis that does not know it. */
export const byText = ({ script, text, key }: ScriptCall): Command =>
  new WrittenCommand("eval", {
    text: headOf(script, "EVAL", script.text) + text.slice(script.head.length),
    key,
  });

/** What comes before a script's keys. */
export const headOf = (
  { keys, args }: Pick<Script, "keys" | "args">,
  command: "EVAL" | "EVALSHA",
  script: string,
): string =>
  `*${3 + keys.length + args.length}\r\n${written(command)}${written(script)}${written(String(keys.length))}`;
