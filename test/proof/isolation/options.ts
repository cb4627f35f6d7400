import { writeFileSync } from "node:fs";
import { flag, type Kind, kinds, ProofArguments, text } from "../arguments.js";

export interface Options {
  readonly tiers: readonly TierName[];
  readonly kinds: readonly Kind[];
  /** Whether the corpus is run without a wall too. */
  readonly control: boolean;
  /** Only containers whose context has this in its name. */
  readonly context?: string;
  /** Only the most dangerous attempts. */
  readonly isQuick: boolean;
  /** Only attempts whose name has this in it. */
  readonly only?: string;
  /** A file for the results. */
  readonly json?: string;
  readonly log?: string;
}

export type TierName = "root" | "user" | "container";

export const usage = `npm run prove:isolation -- [options]

Runs everything that is known to reach past a browser's walls, from pages, extensions, CDP and a program in the browser's place, and
looks whether it got anything: first on Chromium without walls, where it has to.

  --tier <names>           root, user, container (all that can be had): as whom the daemon runs
  --context <text>         containers whose security context has this in its name
  --browser <names>        headless, headful, headless-shell (all)
  --only <text>            attempts whose name has this in it
  --without-containers     proves nothing about containers, and ends with 0 all the same
  --quick                  the most dangerous attempts alone
  --no-control             leaves out the runs without walls, which show that the attempts can succeed
  --json <file>            writes the results there
  --log <file>             takes the logs of the daemons that are started`;

const tiers: Readonly<Record<string, TierName>> = { root: "root", user: "user", container: "container" };

const given = new ProofArguments(usage);

const tiersIn = (tier: string | undefined): readonly TierName[] => given.pick("--tier", tier, tiers);

/** Throws with the usage where the arguments are not understood. */
export function readOptions(args: readonly string[]): Options {
  const {
    tier,
    browser,
    quick,
    only,
    context,
    json,
    log,
    "no-control": isWithout,
    "without-containers": isUncontained,
  } = given.parse(args, {
    tier: text,
    browser: text,
    only: text,
    context: text,
    json: text,
    log: text,
    quick: flag,
    "no-control": flag,
    "without-containers": flag,
  });
  if (log !== undefined) writeFileSync(log, "");
  return {
    tiers: tier === "none" ? [] : tiersIn(tier).filter((name) => !isUncontained || name !== "container"),
    kinds: given.pick("--browser", browser, kinds),
    control: isWithout !== true,
    isQuick: quick === true,
    ...(only !== undefined && { only }),
    ...(context !== undefined && { context }),
    ...(json !== undefined && { json }),
    ...(log !== undefined && { log }),
  };
}
