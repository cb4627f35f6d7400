import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bound } from "../../support/bound.js";
import { compiled } from "../../support/compiled.js";
import { mayHaveOwnNetwork } from "../../support/egress/egress-world.js";
import { isRoot } from "../isolation/programs.js";
import type { Attempt } from "./corpus/attempt.js";
import { corpus } from "./corpus/all.js";
import type { Part } from "./report.js";
import type { Outcome } from "./outcome.js";

/** The limit of one run of the corpus, on a machine that is busy with other tests. */
const limitMs = 900_000;
const hasOwnNetwork = await mayHaveOwnNetwork();

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "remuda-test-corpus-"));
});
afterAll(() => rm(directory, { recursive: true }));

/**
 * `npm run prove:egress` with these options, in a process of its own: it leaves this one's network for
 * another.
 */
async function proveAll(options: readonly string[]): Promise<readonly Part[]> {
  const results = join(directory, `results-${randomBytes(6).toString("hex")}.json`);
  const [program = "", ...args] = bound(
    process.execPath,
    "--enable-source-maps",
    join(compiled, "test/proof/egress/prove.js"),
    "--quiet",
    "--json",
    results,
    ...options,
  );
  // The exit code says what the results say.
  const said = await new Promise<string>(
    (resolve) => void execFile(program, args, (_, output, errors) => resolve(output + errors)),
  );
  const parts = JSON.parse(
    await readFile(results, "utf8").catch(() => {
      throw new Error(said);
    }),
  ) as Part[];
  if (parts.length === 0) throw new Error(said);
  return parts;
}

/** The same with these attempts alone. */
async function prove(attempts: readonly Attempt[], options: readonly string[]): Promise<Part> {
  const names = join(directory, `names-${randomBytes(6).toString("hex")}`);
  await writeFile(names, attempts.map(({ name }) => name).join("\n"));
  const [part] = await proveAll(["--names", names, ...options]);
  return part as Part;
}

const outcomeIn = (part: Part, name: string): Outcome | undefined =>
  part.outcomes.find((outcome) => outcome.name === name);

test("attempts have names of their own", () => {
  expect(new Set(corpus.map(({ name }) => name)).size).toBe(corpus.length);
});

/** A sixth of those that have to succeed without a guard: `npm run prove:egress` tries them all. */
const able = corpus.filter(({ reachesPlain }) => reachesPlain === true).filter((_, at) => at % 6 === 0);

interface Guarded {
  readonly title: string;
  readonly options: readonly string[];
  readonly isFull: boolean;
  readonly needsRoot: boolean;
}

/** The user as whom a daemon runs where nothing else is given. */
const asOne = ["--user", isRoot ? "root" : "ordinary"];

const guarded: readonly Guarded[] = [
  {
    title: "headless Chromium, proxy tier",
    options: ["--browser", "headless", "--tier", "proxy", ...asOne],
    isFull: true,
    needsRoot: false,
  },
  {
    title: "headless-shell, proxy tier",
    options: ["--browser", "headless-shell", "--tier", "proxy", ...asOne],
    isFull: false,
    needsRoot: false,
  },
  {
    title: "headful Chromium, namespace tier",
    options: ["--browser", "headful", "--tier", "namespace", ...asOne],
    isFull: true,
    needsRoot: true,
  },
];

const needsFull = ({ needs }: Attempt): boolean => needs?.includes("chromium") ?? false;

/**
 * Each attempt behind one guard: the one that has fewest of those behind which it can be tried; first those
 * that cannot be tried behind all. `npm run prove:egress` tries each behind all of them.
 */
function spread(kinds: readonly Guarded[]): ReadonlyMap<Guarded, readonly Attempt[]> {
  const shares = new Map<Guarded, Attempt[]>(kinds.map((kind) => [kind, []]));
  const ordered = [...corpus.filter(needsFull), ...corpus.filter((attempt) => !needsFull(attempt))];
  for (const attempt of ordered) {
    const fitting = [...shares].filter(([{ isFull }]) => isFull || !needsFull(attempt));
    const [share] = fitting
      .map(([, attempts]) => attempts)
      .toSorted((one, other) => one.length - other.length);
    share?.push(attempt);
  }
  return shares;
}

const shares = spread(guarded.filter(({ needsRoot }) => !needsRoot || hasOwnNetwork));

/** A run of the program that tests below look at. */
interface Run {
  readonly title: string;
  run(): Promise<readonly Part[]>;
}

const unguarded: Run = {
  title: "without a guard",
  run: async () => [await prove(able, ["--browser", "headless", "--tier", "none"])],
};
const both: Run = {
  title: "without a guard, then with one",
  run: () =>
    proveAll(["--browser", "headless", "--tier", "proxy", "--only", "DevTools fetch their own", ...asOne]),
};
const guardedRuns = [...shares].map(([{ title, options }, attempts]): Run => ({
  title,
  run: async () => [await prove(attempts, ["--no-control", ...options])],
}));

/** They wait more than they compute; yet each starts a daemon and browsers beside those of other tests. */
const atOnce = 2;
const results = new Map<string, Promise<readonly Part[]>>();

/** Begins them in this order, each when the one that many places before it has ended. */
function beginAll(runs: readonly Run[]): void {
  const ended: Promise<unknown>[] = [];
  for (const [at, { title, run }] of runs.entries()) {
    const result = (ended[at - atOnce] ?? Promise.resolve()).then(run);
    results.set(title, result);
    // Whoever waits for it is told; until then nobody does.
    ended.push(result.catch(() => {}));
  }
}
beforeAll(() => beginAll([unguarded, ...guardedRuns, both]));

const resultOf = async ({ title }: { readonly title: string }): Promise<readonly Part[]> =>
  (await results.get(title)) ?? [];
async function partOf(of: { readonly title: string }): Promise<Part> {
  const [part] = await resultOf(of);
  if (!part) throw new Error(`${of.title}: nothing was run`);
  return part;
}

describe("without a guard", () => {
  let part: Part;
  beforeAll(async () => {
    part = await partOf(unguarded);
  }, limitMs);

  test.for(able.map(({ name }) => name))("%s: gets out", (name) => {
    const outcome = outcomeIn(part, name);
    // On a network that is not our own there are addresses and names that cannot be made.
    if (hasOwnNetwork || outcome?.verdict !== "not tried")
      expect(outcome).toMatchObject({ verdict: "escaped" });
  });
});

test("every attempt is tried behind one guard, and each guard is tried by its part of them", () => {
  const all = [...shares.values()];
  expect(new Set(all.flat()).size).toBe(corpus.length);
  for (const attempts of all) expect(attempts.length).toBeGreaterThan(corpus.length / shares.size - 2);
});

describe.each([...shares].map(([{ title }, attempts]) => ({ title, attempts })))(
  "$title",
  ({ title, attempts }) => {
    let part: Part;
    beforeAll(async () => {
      part = await partOf({ title });
    }, limitMs);

    test.for(attempts.map(({ name }) => name))("%s: nothing arrives", (name) => {
      const outcome = outcomeIn(part, name);
      expect(["held", "not tried"], JSON.stringify(outcome ?? part)).toContain(outcome?.verdict);
    });
    test("nothing goes anywhere else either", () => {
      expect(part.faults).toEqual([]);
    });
  },
);

test(
  "what a browser without a guard has asked for is not held against one that has one",
  async () => {
    const parts = await resultOf(both);
    expect(parts.map(({ isPlain, isGood, faults }) => [isPlain, isGood, faults])).toEqual([
      [true, true, []],
      [false, true, []],
    ]);
  },
  limitMs,
);
