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
  /** Those of a judgement. */
  readonly judged?: JudgedArgs;
}
/** What a command that judges an API key is given besides (lua/include/judged.lua). */
export interface JudgedArgs {
  readonly digest: string;
  readonly project: string;
  readonly asker: string;
}

/** A call of a script, written out. */
export interface ScriptCall {
  readonly script: Script;
  /** The key by which a cluster finds the node that is asked. */
  readonly key: string | undefined;
  /** How many keys there are, the keys and the arguments. */
  readonly rest: string;
}

/** Throws where an argument is missing that the header names. */
export function makeCall(script: Script, parts: CallParts): ScriptCall {
  const { keys, args, sharedArgs = nothingGiven, judged } = parts;
  const shared = keys.shared?.of(script) ?? nothingShared;
  const given = sharedArgs.of(script);
  let { first: key } = shared;
  let rest = shared.text;
  for (let at = shared.count; at < script.keys.length; at += 1) {
    const own = keys.keyOf(script.keys[at] ?? "");
    key ??= own;
    rest += written(own);
  }
  for (let at = 0; at < script.args.length; at += 1) {
    const name = script.args[at] ?? "";
    const own = args[name] ?? judged?.[name as keyof JudgedArgs];
    const text = own === undefined ? given[at] : written(String(own));
    if (text === undefined) throw new Error(`script ${script.name} was not given ${name}`);
    rest += text;
  }
  return { script, key, rest };
}

/**
 * The client would flatten, check and measure each key and argument of each call anew, which cost more than
 * all else that it does for one.
 */
class WrittenCommand extends Command {
  constructor(
    name: string,
    private readonly call: { readonly head: string; readonly rest: string; readonly key: string | undefined },
  ) {
    super(name, [], { replyEncoding: "utf8" });
  }

  override toWritable(): string {
    return this.call.head + this.call.rest;
  }

  override getKeys(): string[] {
    return this.call.key === undefined ? [] : [this.call.key];
  }
}

/** Names the script by its digest. */
export const byDigest = ({ script, rest, key }: ScriptCall): Command =>
  new WrittenCommand("evalsha", { head: script.head, rest, key });

/** Sends its text along, for a Redis that does not know it. */
export const byText = ({ script, rest, key }: ScriptCall): Command =>
  new WrittenCommand("eval", { head: headOf(script, "EVAL", script.text), rest, key });

/** What comes before a script's keys. */
export const headOf = (
  { keys, args }: Pick<Script, "keys" | "args">,
  command: "EVAL" | "EVALSHA",
  script: string,
): string =>
  `*${3 + keys.length + args.length}\r\n${written(command)}${written(script)}${written(String(keys.length))}`;
