import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { groupBy } from "../../src/base/group-by.js";
import { circlesIn, faultsOf, folderRules, packageRules, wordRules } from "./rules.js";
import { folderOf, root, type Source, sources } from "./sources.js";

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  dependencies: Record<string, string>;
  scripts: Record<string, string>;
};

describe("sources", () => {
  test("imports point inward", () => {
    expect(faultsOf(folderRules, sources)).toEqual([]);
  });
  test("no file imports itself by way of others, nor its types", () => {
    expect(circlesIn(sources)).toEqual([]);
  });
  test("each package and built-in has its place", () => {
    expect(faultsOf(packageRules, sources)).toEqual([]);
  });
  test("environment, exit and time have their places", () => {
    expect(faultsOf(wordRules, sources)).toEqual([]);
  });
  test("every import names a file that exists or a package the daemon is installed with", () => {
    const paths = new Set(sources.map(({ path }) => path));
    const strange = sources.flatMap(({ path, files, packages }) => [
      ...files
        .filter((file) => file.endsWith(".ts") && !paths.has(file))
        .map((file) => `${path} imports ${file}`),
      ...packages
        .filter((name) => !name.startsWith("node:") && !manifest.dependencies[name])
        .map((name) => `${path} imports ${name}`),
    ]);
    expect(strange).toEqual([]);
  });
  test("no folder has more files than a newcomer can name after one look", () => {
    const scripts = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" });
    const paths = [...sources.map(({ path }) => path), ...scripts.filter((path) => path.endsWith(".lua"))];
    const folders = [...groupBy(paths, dirname)];
    const crowded = folders.filter(([, { length }]) => length > 25);
    expect(crowded.map(([folder, { length }]) => `${folder} has ${length}`)).toEqual([]);
  });
  test("a file of a few lines that one other imports stands in that one, unless a wall keeps them apart", () => {
    // Each is started by itself: a role that is chosen, or a thread.
    const apart = ["daemon/all.ts", "daemon/roles.ts", "gateway/gates/judge-worker.ts"];
    const lengths = new Map(
      sources.map(({ path }) => [path, readFileSync(join(root, "src", path), "utf8").split("\n").length - 1]),
    );
    const lengthOf = (path: string): number => lengths.get(path) ?? 0;
    const small = sources.filter(({ path }) => lengthOf(path) < 40 && !apart.includes(path));
    const lone = small.flatMap(({ path }) => {
      const [importer, ...others] = sources.filter(({ files }) => files.includes(path));
      const fits = importer && lengthOf(path) + lengthOf(importer.path) <= 300;
      const isTogether = importer && folderOf(importer.path) === folderOf(path);
      return fits && isTogether && others.length === 0 ? [`${path} is for ${importer.path} alone`] : [];
    });
    expect(lone).toEqual([]);
  });
  test("files are named for the one concept in them", () => {
    const vague = sources.filter(({ path }) =>
      /(^|[/-])(utils?|helpers?|managers?|services?|common|misc|index|types)\.ts$/.test(path),
    );
    const oddlyNamed = sources.filter(({ path }) => !/^([a-z0-9-]+\/)*[a-z0-9-]+\.ts$/.test(path));
    expect([...vague, ...oddlyNamed].map(({ path }) => path)).toEqual([]);
  });
});

describe("tests", () => {
  // runIf is for what only root can show; the daemon behaves otherwise for others, and other tests show that.
  test("none is skipped, none runs alone", () => {
    const files = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" }).filter((path) =>
      path.endsWith(".test.ts"),
    );
    const offence = /\b(test|it|describe|context|ctx|task)\.(skip|only|todo|skipIf|fails)\b/;
    expect(files.filter((path) => offence.test(readFileSync(join(root, "test", path), "utf8")))).toEqual([]);
  });
});

describe("the rules themselves", () => {
  const source = (path: string, over: Partial<Source>): Source => ({
    path,
    code: "",
    files: [],
    packages: [],
    ...over,
  });
  const all = [...folderRules, ...packageRules, ...wordRules];

  test.each([
    ["a file of base that reaches out", source("base/ids.ts", { files: ["pool/lease.ts"] })],
    ["a domain file that knows its caller", source("pool/acquire.ts", { files: ["http/server.ts"] })],
    ["a route that knows the store", source("http/routes/pools.ts", { files: ["store/redis.ts"] })],
    ["a route that knows the gateway", source("http/server.ts", { files: ["gateway/gateway.ts"] })],
    ["a gateway that knows the API", source("gateway/gateway.ts", { files: ["http/errors.ts"] })],
    ["a gateway that knows its node", source("gateway/gateway.ts", { files: ["node/slots.ts"] })],
    ["a part that knows its composition root", source("gateway/gateway.ts", { files: ["daemon/node.ts"] })],
    ["Redis outside the store", source("schedule/tick.ts", { packages: ["ioredis"] })],
    ["a process started by a route", source("http/server.ts", { packages: ["node:child_process"] })],
    ["I/O in the domain", source("pool/acquire.ts", { packages: ["node:fs"] })],
    [
      "an environment variable read on the way",
      source("gateway/gateway.ts", { code: "const a = process.env.A;" }),
    ],
    ["a folder without a wall", source("wardrobe/keys.ts", {})],
    ["a key that is compared byte by byte", source("base/crypto/key.ts", { code: "given.equals(key)" })],
    ["an exit", source("daemon/control.ts", { code: "process.exit(1)" })],
    ["a timer of its own", source("node/beat.ts", { code: "setInterval(beat, 1000)" })],
    ["a barrel", source("pool/all.ts", { code: 'export * from "./lease.js";' })],
    ["a name passed on", source("egress/egress.ts", { code: 'export { CurlFailure } from "./curl.js";' })],
    ["a type passed on", source("egress/rules.ts", { code: 'export type {\n  A,\n} from "./parts.js";' })],
  ])("%s is an offence, and is told with the reason", (_, offender) => {
    const faults = faultsOf(all, [offender]);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(/^\S+ (imports|says|has) .+: .{20,}/);
  });

  test("a circle is told with every file of it and the reason", () => {
    const circles = circlesIn([
      source("main.ts", { files: ["lease/lend.ts"] }),
      source("lease/lend.ts", { files: ["base/ids.ts", "lease/grants.ts"] }),
      source("lease/grants.ts", { files: ["base/ids.ts", "lease/lend.ts"] }),
      source("base/ids.ts", {}),
    ]);
    expect(circles).toHaveLength(1);
    expect(circles[0]).toMatch(/^lease\/lend\.ts imports lease\/grants\.ts imports lease\/lend\.ts: .{20,}/);
  });
});
