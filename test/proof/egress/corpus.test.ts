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
import { controls, namespaceNames, quick, quickByKind, unknown } from "./corpus/quick.js";
import type { Part } from "./report.js";
import type { Outcome } from "./outcome.js";

/** The limit of one run of the corpus, on a machine that is busy with other tests. */
const limitMs = 900_000;
const hasOwnNetwork = await mayHaveOwnNetwork();
/** As whom the daemon runs where nothing else is given. */
const user = isRoot ? "root" : "ordinary";

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

/** The same in headless Chromium, with these attempts alone. */
async function prove(attempts: readonly Attempt[], options: readonly string[]): Promise<readonly Part[]> {
  const names = await writeNames(attempts);
  return await proveAll(["--names", names, "--browser", "headless", "--user", user, ...options]);
}

async function writeNames(attempts: readonly Attempt[]): Promise<string> {
  const file = join(directory, `names-${randomBytes(6).toString("hex")}`);
  await writeFile(file, attempts.map(({ name }) => name).join("\n"));
  return file;
}

describe("the quick part", () => {
  test("attempts have names of their own", () => {
    expect(new Set(corpus.map(({ name }) => name)).size).toBe(corpus.length);
  });
  test("each name in it is that of an attempt", () => expect(unknown).toEqual([]));
  test.each([...quickByKind])("of %s there are some, one of them with a control", (_, attempts) => {
    expect(attempts.some((attempt) => controls.includes(attempt))).toBe(true);
  });

  const domainOf = ({ name }: Attempt): string | undefined => /^command: ([A-Z]\w+)\./.exec(name)?.[1];
  test.each([
    ["domain of the protocol whose commands are tried", domainOf],
    ["client library", ({ name }: Attempt) => /^(Playwright|Puppeteer)'s/.exec(name)?.[1]],
    [
      "interface of extensions that changes a setting",
      ({ name }: Attempt) => /chrome\.(proxy|privacy)/.exec(name)?.[1],
    ],
  ])("of each %s there is one", (_, sortOf) => {
    expect(new Set(quick.map(sortOf))).toEqual(new Set(corpus.map(sortOf)));
  });
  test("of each thing that an attempt may need there is one", () => {
    const needsOf = (attempts: readonly Attempt[]) => new Set(attempts.flatMap(({ needs = [] }) => needs));
    expect(needsOf(quick)).toEqual(needsOf(corpus));
  });
});

interface Tier {
  readonly title: string;
  readonly attempts: readonly Attempt[];
  run(): Promise<readonly Part[]>;
}

/** The control runs first, in the same process: what that has asked for is not held against the guarded. */
const proxy: Tier = {
  title: "headless Chromium, proxy tier",
  attempts: quick,
  run: async () => await prove(quick, ["--tier", "proxy", "--control-names", await writeNames(controls)]),
};
const passing = quick.filter(({ name }) => namespaceNames.has(name));
const namespace: Tier = {
  title: "headless Chromium, namespace tier",
  attempts: passing,
  run: () => prove(passing, ["--tier", "namespace", "--no-control"]),
};
const tiers = hasOwnNetwork ? [proxy, namespace] : [proxy];

/** One after the other: on a slow machine the browsers of one would keep those of the other from starting. */
const results = new Map<string, Promise<readonly Part[]>>();
beforeAll(() => {
  let last: Promise<unknown> = Promise.resolve();
  for (const { title, run } of tiers) {
    const result = last.then(run);
    // Whoever waits for it is told; until then nobody does.
    last = result.catch(() => {});
    results.set(title, result);
  }
});

async function partOf({ title }: Tier, isPlain = false): Promise<Part> {
  const parts = (await results.get(title)) ?? [];
  const part = parts.find((each) => each.isPlain === isPlain);
  if (!part) throw new Error(`${title}: nothing was run`);
  return part;
}
const outcomeIn = (part: Part, name: string): Outcome | undefined =>
  part.outcomes.find((outcome) => outcome.name === name);

describe("headless Chromium without a guard", () => {
  let part: Part;
  beforeAll(async () => {
    part = await partOf(proxy, true);
  }, limitMs);

  test.for(controls.map(({ name }) => name))("%s: gets out", (name) => {
    const outcome = outcomeIn(part, name);
    // On a network that is not our own there are addresses and names that cannot be made.
    if (hasOwnNetwork || outcome?.verdict !== "not tried")
      expect(outcome).toMatchObject({ verdict: "escaped" });
  });
});

describe.each(tiers)("$title", (tier) => {
  let part: Part;
  beforeAll(async () => {
    part = await partOf(tier);
  }, limitMs);

  test.for(tier.attempts.map(({ name }) => name))("%s: nothing arrives", (name) => {
    const outcome = outcomeIn(part, name);
    expect(["held", "not tried"], JSON.stringify(outcome ?? part)).toContain(outcome?.verdict);
  });
  test("nothing goes anywhere else either", () => {
    expect(part.faults).toEqual([]);
  });
});
