import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { defaultGate } from "../../src/node/default-gate.js";
import { egressTable } from "../../src/node/egress-rules.js";
import { fileParams } from "../../src/node/file-params.js";
import { openPlain } from "../egress/plain.js";
import { commands as ofPlaywright } from "../support/protocol-params.js";

interface Row {
  readonly name: string;
  readonly verdict: string;
  readonly kind: string;
}
const rows: readonly Row[] = readFileSync(join(import.meta.dirname, "judged-commands.txt"), "utf8").split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => {
    const [name = "", verdict = "", kind = ""] = line.split(" ");
    return { name, verdict, kind };
  });
const names = rows.map(({ name }) => name);

let ofChromium: readonly string[] = [];
let close = async (): Promise<void> => {};
beforeAll(async () => {
  const house = await openPlain();
  const door = await house.open("listed");
  close = async () => {
    await door.close();
    await house.close();
  };
  const reply = await fetch(`http://${new URL(door.cdpUrl).host}/json/protocol`);
  const { domains } = await reply.json() as { domains: readonly { domain: string; commands?: readonly { name: string }[] }[] };
  ofChromium = domains.flatMap(({ domain, commands = [] }) => commands.map(({ name }) => `${domain}.${name}`));
});
afterAll(() => close());

test("every command of the installed Chromium and of Playwright's protocol is judged, and nothing else", () => {
  expect(ofChromium.length).toBeGreaterThan(600);
  const all = new Set([...ofChromium, ...ofPlaywright]);
  expect([[...all].filter((name) => !names.includes(name)), names.filter((name) => !all.has(name))]).toEqual([[], []]);
  expect(new Set(names).size).toBe(names.length);
  expect(new Set(rows.map(({ kind }) => kind))).toEqual(new Set(["apps", "browser", "network", "page", "simulated", "storage", "targets"]));
});

const directories = { downloads: "/b/downloads", uploads: "/b/uploads", temporary: "/b/tmp" };
const judge = (method: string): string => defaultGate({ id: 1, method, params: {} }, { directories }).kind;

test.each(rows.map(({ name, verdict }) => [name, verdict] as const))("%s is %s", (name, verdict) => {
  // One that carries another is refused without any.
  const expected = { "passed": "pass", "by-params": name === "Target.sendMessageToTarget" ? "refuse" : "pass", "refused": "refuse", "answered": "answer" }[verdict];
  expect(judge(name)).toBe(expected);
});

/** By the bridge, which knows the targets. */
const judgedLater = ["Target.attachToTarget", "Target.sendMessageToTarget"];

test("what is judged by its params is what the tables of params say", () => {
  const judged = [
    ...Object.entries(fileParams).filter(([, treatment]) => treatment !== "harmless").map(([name]) => name),
    ...Object.entries(egressTable).filter(([name, { is }]) => is === "refused" && name.split(".").length > 2).map(([name]) => name),
  ].map((name) => name.split(".").slice(0, 2).join("."));
  const outright = new Set(rows.filter(({ verdict }) => verdict === "refused").map(({ name }) => name));
  const byParams = rows.filter(({ verdict }) => verdict === "by-params").map(({ name }) => name);
  expect([...new Set([...judged.filter((name) => !outright.has(name)), ...judgedLater])].toSorted()).toEqual(byParams.toSorted());
});
