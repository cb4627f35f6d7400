import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bound } from "../../support/bound.js";
import { compiled } from "../../support/compiled.js";
import { corpus, corpusByKind, quickControls } from "./corpus/all.js";
import type { Attempt } from "./corpus/attempt.js";
import { isRoot } from "./programs.js";
import type { Part } from "./report.js";
import type { Outcome } from "./outcome.js";

/** The limit of one run of the most dangerous attempts, on a machine that is busy with other tests. */
const limitMs = 900_000;
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

/**
 * Every run that the tests below look at, one after the other: an attempt that takes all that the machine has
 * would keep the browsers of another run from their start.
 */
const runs = new Map<string, Promise<Part>>();
let last: Promise<unknown> = Promise.resolve();
const partOf = (options: readonly string[]): Promise<Part> => {
  const name = options.join(" ");
  const run = runs.get(name) ?? last.then(() => prove(options));
  runs.set(name, run);
  last = run.catch(() => {});
  // Whoever waits for it is told; until then nobody does.
  run.catch(() => {});
  return run;
};

const outcomeIn = (part: Part, name: string): Outcome | undefined =>
  part.outcomes.find((outcome) => outcome.name === name);

test("attempts have names of their own", () => {
  expect(new Set(corpus.map(({ name }) => name)).size).toBe(corpus.length);
});

const isIn = (name: string): boolean => quick.some((attempt) => attempt.name === name);

describe("the quick part", () => {
  test.each(Object.entries<readonly Attempt[]>(corpusByKind))("of %s there are some", (_, attempts) => {
    expect(attempts.some(({ isQuick }) => isQuick)).toBe(true);
  });
  test("of each vector there are some", () => {
    const vectorsOf = (attempts: readonly Attempt[]) => new Set(attempts.map(({ vector }) => vector));
    expect(vectorsOf(quick)).toEqual(vectorsOf(corpus));
  });

  // Each was open once.
  test.each<readonly [string, ...(readonly string[])]>([
    [
      "an extension's downloads of files",
      "extension: downloads of files, read back by DOM.setFileInputFiles",
    ],
    [
      "a packed extension that is not looked into",
      "extension: packed, with more in it than its manifest says",
    ],
    [
      "pages of the browser's own, over CDP",
      "own pages: Target.createTarget",
      "own pages: Browser.executeBrowserCommand",
      "own pages: chrome.tabs of the PDF viewer, and a directory of the host packed",
    ],
    ["one long or deep message", "flood: a message of 20 MiB", "flood: a message of 300,000 values"],
    [
      "many clients, and messages that are not finished",
      "flood: 40 clients of one browser",
      "flood: 96 MiB of messages that are not finished",
    ],
    ["denied requests that fill the log", "flood: 1000 denied requests and the log"],
    ["no limit of what a browser uses", "1500 processes at once"],
    [
      "the host's loopback",
      "ports of the host's loopback",
      "a site of the host's loopback, from a page of a daemon as it is shipped",
    ],
    [
      "what others of the machine see and ask",
      "flood: /metrics under another name",
      "flood: sessions in command lines",
      "outside: the bounding set of its first process",
    ],
  ])("%s is in it", (_, ...names) => {
    expect(names.filter((name) => !isIn(name))).toEqual([]);
  });
});

const plain = ["--tier", "none", "--browser", "headless"];
const walled = [
  {
    title: "headless Chromium, the daemon root",
    options: ["--no-control", "--tier", "root", "--browser", "headless"],
    needsRoot: true,
  },
  {
    title: "headless-shell, the daemon an ordinary user",
    options: ["--no-control", "--tier", "user", "--browser", "headless-shell"],
    needsRoot: false,
  },
].filter(({ needsRoot }) => isRoot || !needsRoot);

beforeAll(() => {
  for (const options of [plain, ...walled.map((each) => each.options)]) void partOf(options);
});

describe("without walls", () => {
  let part: Part;
  beforeAll(async () => {
    part = await partOf(plain);
  }, limitMs);

  test.for(quickControls.map(({ name }) => name))("%s: succeeds", (name) => {
    expect(outcomeIn(part, name)).toMatchObject({ verdict: "leaked" });
  });
});

describe.each(walled)("$title", ({ options }) => {
  let part: Part;
  beforeAll(async () => {
    part = await partOf(options);
  }, limitMs);

  test.for(quick.map(({ name }) => name))("%s: gets nothing", (name) => {
    const outcome = outcomeIn(part, name);
    expect(["held", "not tried"], JSON.stringify(outcome ?? part)).toContain(outcome?.verdict);
  });
});
