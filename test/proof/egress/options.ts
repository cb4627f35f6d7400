import { readFileSync } from "node:fs";
import { flag, type Kind, kinds, ProofArguments, text } from "../arguments.js";
import { isRoot } from "../isolation/programs.js";
import type { Daemon, Tier, User } from "./guarded.js";

export interface Options {
  /** The operator's own; without it one is started. */
  readonly daemon?: Daemon;
  /** An address of this machine that the browsers of that daemon can reach. */
  readonly sinkAddress?: string;
  readonly tiers: readonly Tier[];
  /** The users as whom daemons are started. */
  readonly users: readonly User[];
  readonly kinds: readonly Kind[];
  /** Whether the corpus is run without a guard first. */
  readonly control: boolean;
  /** Only attempts whose name has this in it. */
  readonly only?: string;
  /** Only attempts that are called so. */
  readonly names?: ReadonlySet<string>;
  /** Those of them that are tried without a guard too. */
  readonly controlNames?: ReadonlySet<string>;
  /** A file for the results. */
  readonly json?: string;
  /** A file for the log of the daemons that are started. */
  readonly log?: string;
  readonly isQuiet: boolean;
}

export const usage = `npm run prove:egress -- [options]

Runs every known way out of a browser against one of Remuda's and looks whether anything arrives.

  --url <http://…>         a daemon that runs already; without it one is started, in a network of its own
  --key-file <file>        holds its API key
  --sink-address <address> of this machine, as that daemon's browsers reach it (127.0.0.1)
  --tier <names>           proxy, namespace (both); of a daemon that is started. none: only the runs without a guard
  --user <names>           root, ordinary (all that can be had): as whom a daemon that is started runs
  --browser <names>        headless, headful, headless-shell (all)
  --only <text>            attempts whose name has this in it
  --names <file>           attempts whose names are its lines
  --control-names <file>   attempts that are tried without a guard too (all)
  --no-control             leaves out the runs without a guard, which show that the attempts can succeed
  --json <file>            writes the results there
  --log <file>             takes the log of the daemon that is started
  --quiet                  prints what got out, and the summary`;

const tiers: Readonly<Record<string, Tier>> = { proxy: "proxy", namespace: "namespace" };
const users: Readonly<Record<string, User>> = { ...(isRoot && { root: "root" }), ordinary: "ordinary" };

const given = new ProofArguments(usage);
const linesOf = (file: string): ReadonlySet<string> => new Set(readFileSync(file, "utf8").split("\n"));

/** Throws with the usage where the arguments are not understood. */
export function readOptions(args: readonly string[]): Options {
  const values = given.parse(args, {
    url: text,
    "key-file": text,
    "sink-address": text,
    tier: text,
    user: text,
    browser: text,
    only: text,
    names: text,
    "control-names": text,
    json: text,
    "no-control": flag,
    log: text,
    quiet: flag,
  });
  const {
    url,
    "key-file": keyFile,
    "sink-address": sinkAddress,
    "control-names": controlNames,
    only,
    names,
    json,
    log,
  } = values;
  return {
    tiers: values.tier === "none" ? [] : given.pick("--tier", values.tier, tiers),
    users: given.pick("--user", values.user, users),
    kinds: given.pick("--browser", values.browser, kinds),
    control: values["no-control"] !== true,
    isQuiet: values.quiet === true,
    ...(sinkAddress !== undefined && { sinkAddress }),
    ...(only !== undefined && { only }),
    ...(names !== undefined && { names: linesOf(names) }),
    ...(controlNames !== undefined && { controlNames: linesOf(controlNames) }),
    ...(json !== undefined && { json }),
    ...(log !== undefined && { log }),
    ...(url !== undefined && { daemon: foreign(url, keyFile) }),
  };
}

const foreign = (url: string, keyFile: string | undefined): Daemon => ({
  url: url.replace(/\/$/, ""),
  key: keyFile === undefined ? "" : readFileSync(keyFile, "utf8").trim(),
  ownPorts: async () => [Number(new URL(url).port || 80)],
  close: async () => {},
});
