import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bound } from "../../support/bound.js";
import { compiled } from "../../support/compiled.js";
import { corpus } from "./corpus/all.js";
import { isRoot } from "./programs.js";
import type { Part } from "./report.js";
import type { Outcome } from "./outcome.js";

/** Of one run of the most dangerous attempts, on a machine that is busy with other tests. */
const limitMs = 300_000;
const quick = corpus.filter(({ isQuick }) => isQuick === true);

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "remuda-test-corpus-"));
});
afterAll(() => rm(directory, { recursive: true }));

/** `npm run prove:isolation -- --quick` with these options, in a process of its own. */
async function prove(options: readonly string[]): Promise<Part> {
  const results = join(directory, `results-${options.join("")}.json`);
  const [program = "", ...args] = bound(
    process.execPath,
    "--enable-source-maps",
    join(compiled, "test/proof/isolation/prove.js"),
    "--quick",
    "--json",
    results,
    ...options,
  );
  // The exit code says what the results say.
  const said = await new Promise<string>(
    (resolve) => void execFile(program, args, (_, output, errors) => resolve(output + errors)),
  );
  const [part] = JSON.parse(
    await readFile(results, "utf8").catch(() => {
      throw new Error(said);
    }),
  ) as Part[];
  if (!part) throw new Error(said);
  return part;
}

const outcomeIn = (part: Part, name: string): Outcome | undefined =>
  part.outcomes.find((outcome) => outcome.name === name);

test("attempts have names of their own", () => {
  expect(new Set(corpus.map(({ name }) => name)).size).toBe(corpus.length);
});

describe("without walls", () => {
  let part: Part;
  beforeAll(async () => {
    part = await prove(["--tier", "none", "--browser", "headless"]);
  }, limitMs);

  const able = quick.filter(
    ({ succeedsPlain }) => succeedsPlain === true || (isRoot && succeedsPlain === "as root"),
  );
  test.for(able.map(({ name }) => name))("%s: succeeds", (name) => {
    expect(outcomeIn(part, name)).toMatchObject({ verdict: "leaked" });
  });
});

const walled = [
  {
    title: "headless Chromium, the daemon root",
    options: ["--tier", "root", "--browser", "headless"],
    needsRoot: true,
  },
  {
    title: "headless-shell, the daemon an ordinary user",
    options: ["--tier", "user", "--browser", "headless-shell"],
    needsRoot: false,
  },
];

describe.each(walled.filter(({ needsRoot }) => isRoot || !needsRoot))("$title", ({ options }) => {
  let part: Part;
  beforeAll(async () => {
    part = await prove(["--no-control", ...options]);
  }, limitMs);

  test.for(quick.map(({ name }) => name))("%s: gets nothing", (name) => {
    const outcome = outcomeIn(part, name);
    expect(["held", "not tried"], JSON.stringify(outcome ?? part)).toContain(outcome?.verdict);
  });
});
