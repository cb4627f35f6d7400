import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { Engine } from "../../../src/browser/chromium.js";
import { defaultGate } from "../../../src/gateway/gates/default-gate.js";
import { egressTable } from "../../../src/gateway/gates/egress-commands.js";
import { fileParams } from "../../../src/gateway/gates/file-parameters.js";
import { domains } from "../../proof/isolation/corpus/domains.js";
import { findProtocol, type ProtocolDomain } from "../../support/gateway/installed-protocol.js";
import { commands as ofPlaywright } from "../../support/gateway/protocol-params.js";

interface Row {
  readonly name: string;
  readonly verdict: string;
  readonly kind: string;
}
const rows: readonly Row[] = readFileSync(join(import.meta.dirname, "judged-commands.txt"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => {
    const [name = "", verdict = "", kind = ""] = line.split(" ");
    return { name, verdict, kind };
  });
const names = rows.map(({ name }) => name);

const engines = ["chromium", "headless-shell"] as const;
let protocols: ReadonlyMap<Engine, readonly ProtocolDomain[]> = new Map();
beforeAll(async () => {
  protocols = new Map(
    await Promise.all(engines.map(async (engine) => [engine, await findProtocol(engine)] as const)),
  );
});
const commandsOf = (engine: Engine): string[] =>
  (protocols.get(engine) ?? []).flatMap(({ domain, commands = [] }) =>
    commands.map(({ name }) => `${domain}.${name}`),
  );

test("every command of the installed engines and of Playwright's protocol is judged, and nothing else", () => {
  for (const engine of engines) expect(commandsOf(engine).length, engine).toBeGreaterThan(600);
  const all = new Set([...engines.flatMap(commandsOf), ...ofPlaywright]);
  expect([[...all].filter((name) => !names.includes(name)), names.filter((name) => !all.has(name))]).toEqual([
    [],
    [],
  ]);
  expect(new Set(names).size).toBe(names.length);
  expect(new Set(rows.map(({ kind }) => kind))).toEqual(
    new Set(["apps", "browser", "network", "page", "simulated", "storage", "targets"]),
  );
});

test.each(engines)(
  "every domain of the installed %s is in the corpus of the proof of isolation",
  (engine) => {
    const found = (protocols.get(engine) ?? []).map(({ domain }) => domain);
    expect([
      found.filter((domain) => !(domain in domains)),
      Object.keys(domains).filter((domain) => !found.includes(domain)),
    ]).toEqual([[], []]);
  },
);

const directories = { downloads: "/b/downloads", uploads: "/b/uploads", temporary: "/b/tmp" };
const judge = (method: string): string => defaultGate({ id: 1, method, params: {} }, { directories }).kind;

test.each(rows.map(({ name, verdict }) => [name, verdict] as const))("%s is %s", (name, verdict) => {
  // One that carries another is refused without any.
  const expected = {
    passed: "pass",
    "by-params": name === "Target.sendMessageToTarget" ? "refuse" : "pass",
    refused: "refuse",
    answered: "answer",
  }[verdict];
  expect(judge(name)).toBe(expected);
});

/** The bridge judges these, because it knows the targets. */
const judgedLater = ["Target.attachToTarget", "Target.sendMessageToTarget"];

test("what is judged by its params is what the tables of params say", () => {
  const judged = [
    ...Object.entries(fileParams)
      .filter(([, treatment]) => treatment !== "harmless")
      .map(([name]) => name),
    ...Object.entries(egressTable)
      .filter(([name, { is }]) => is === "refused" && name.split(".").length > 2)
      .map(([name]) => name),
  ].map((name) => name.split(".").slice(0, 2).join("."));
  const outright = new Set(rows.filter(({ verdict }) => verdict === "refused").map(({ name }) => name));
  const byParams = rows.filter(({ verdict }) => verdict === "by-params").map(({ name }) => name);
  expect([...new Set([...judged.filter((name) => !outright.has(name)), ...judgedLater])].toSorted()).toEqual(
    byParams.toSorted(),
  );
});
