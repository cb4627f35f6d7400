import { execFile } from "node:child_process";
import { cp, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileSources } from "../../support/compiled.js";
import { mayHaveOwnNetwork } from "../../support/egress/egress-world.js";
import { corpus } from "./corpus/all.js";
import type { Part } from "./report.js";
import type { Outcome } from "./run.js";

const root = join(import.meta.dirname, "../../..");
/** Of one run of the corpus, on a machine that is busy with other tests. */
const limitMs = 900_000;
const hasOwnNetwork = await mayHaveOwnNetwork();

let proof: { directory: string; remove(): Promise<void> };
beforeAll(async () => {
  proof = await compileSources("tsconfig.prove.json");
  await cp(join(root, "src/store/lua"), join(proof.directory, "src/store/lua"), { recursive: true });
  await symlink(join(root, "package.json"), join(proof.directory, "package.json"));
});
afterAll(() => proof.remove());

/**
 * `npm run prove:egress` with these options, in a process of its own: it leaves this one's network for
 * another.
 */
async function proveAll(options: readonly string[]): Promise<readonly Part[]> {
  const results = join(proof.directory, "results.json");
  const args = [
    "--enable-source-maps",
    join(proof.directory, "test/proof/egress/prove.js"),
    "--quiet",
    "--json",
    results,
    ...options,
  ];
  // The exit code says what the results say.
  const said = await new Promise<string>(
    (resolve) => void execFile(process.execPath, args, (_, output, errors) => resolve(output + errors)),
  );
  const parts = JSON.parse(
    await readFile(results, "utf8").catch(() => {
      throw new Error(said);
    }),
  ) as Part[];
  if (parts.length === 0) throw new Error(said);
  return parts;
}

const prove = async (options: readonly string[]): Promise<Part> => (await proveAll(options))[0] as Part;

const outcomeIn = (part: Part, name: string): Outcome | undefined =>
  part.outcomes.find((outcome) => outcome.name === name);

test("attempts have names of their own", () => {
  expect(new Set(corpus.map(({ name }) => name)).size).toBe(corpus.length);
});

test(
  "what a browser without a guard has asked for is not held against one that has one",
  async () => {
    const parts = await proveAll([
      "--browser",
      "headless",
      "--tier",
      "proxy",
      "--only",
      "DevTools fetch their own",
    ]);
    expect(parts.map(({ isPlain, isGood, faults }) => [isPlain, isGood, faults])).toEqual([
      [true, true, []],
      [false, true, []],
    ]);
  },
  limitMs,
);

describe("without a guard", () => {
  let part: Part;
  beforeAll(async () => {
    part = await prove(["--browser", "headless", "--tier", "none"]);
  }, limitMs);
  const able = corpus.filter(({ reachesPlain }) => reachesPlain === true).map(({ name }) => name);

  test.for(able)("%s: gets out", (name) => {
    const outcome = outcomeIn(part, name);
    // On a network that is not our own there are addresses and names that cannot be made.
    if (hasOwnNetwork || outcome?.verdict !== "not tried")
      expect(outcome).toMatchObject({ verdict: "escaped" });
  });
});

const guarded = [
  {
    title: "headless Chromium, proxy tier",
    options: ["--browser", "headless", "--tier", "proxy"],
    needsRoot: false,
  },
  {
    title: "headless-shell, proxy tier",
    options: ["--browser", "headless-shell", "--tier", "proxy"],
    needsRoot: false,
  },
  {
    title: "headful Chromium, namespace tier",
    options: ["--browser", "headful", "--tier", "namespace"],
    needsRoot: true,
  },
];

describe.each(guarded.filter(({ needsRoot }) => !needsRoot || hasOwnNetwork))("$title", ({ options }) => {
  let part: Part;
  beforeAll(async () => {
    part = await prove(["--no-control", ...options]);
  }, limitMs);

  test.for(corpus.map(({ name }) => name))("%s: nothing arrives", (name) => {
    const outcome = outcomeIn(part, name);
    expect(["held", "not tried"], JSON.stringify(outcome)).toContain(outcome?.verdict);
  });
  test("nothing goes anywhere else either", () => {
    expect(part.faults).toEqual([]);
  });
});
