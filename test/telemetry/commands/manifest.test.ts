import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Field } from "../../../src/telemetry/commands/fields.js";
import { reportedCommands } from "../../../src/telemetry/commands/methods.js";
import { paramsNamed } from "../../support/gateway/protocol-params.js";
import { neverTold } from "./never-told.js";
import { unreportedCommands, unreportedDomains } from "./unreported.js";

/** judged-commands.test.ts holds the list against the installed engines and Playwright's protocol. */
const installed = readFileSync(join(import.meta.dirname, "../../gateway/gates/judged-commands.txt"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => line.split(" ")[0] ?? "");

const reported = Object.keys(reportedCommands);
const unreported = Object.entries(unreportedCommands).flatMap(([domain, { commands }]) =>
  commands.map((command) => `${domain}.${command}`),
);
const isOfUnreportedDomain = (name: string): boolean => (name.split(".")[0] ?? "") in unreportedDomains;

test("every command of the installed protocol is reported, or is said not to be and why", () => {
  expect(installed.length).toBeGreaterThan(600);
  const unclassified = installed.filter(
    (name) => !reported.includes(name) && !unreported.includes(name) && !isOfUnreportedDomain(name),
  );
  expect(unclassified).toEqual([]);
});

test("no command is classified twice, and none that the protocol does not have", () => {
  const classified = [...reported, ...unreported];
  expect(new Set(classified).size).toBe(classified.length);
  expect(classified.filter((name) => !installed.includes(name) || isOfUnreportedDomain(name))).toEqual([]);
  const domains = new Set(installed.map((name) => name.split(".")[0] ?? ""));
  expect(Object.keys(unreportedDomains).filter((domain) => !domains.has(domain))).toEqual([]);
});

/** They are told by a field that reads the list in which they stand. */
const toldOfLists = ["Input.dispatchDragEvent.data.items.mimeType"];
/** What the fields of a command read, without places in lists. */
const argumentsRead = (fields: Readonly<Record<string, Field>>): string[] =>
  Object.values(fields).map(({ path }) => path.filter((name) => !/^\d+$/.test(name)).join("."));

test("every argument of a reported command is told in some form, or is said never to be and why", () => {
  const all = paramsNamed(() => true).filter((name) => reported.includes(name.split(".", 2).join(".")));
  const leaves = all.filter((name) => !all.some((other) => other.startsWith(`${name}.`)));
  const told = Object.entries(reportedCommands).flatMap(([method, fields]) =>
    argumentsRead(fields).map((path) => `${method}.${path}`),
  );
  const isTold = (name: string): boolean => told.includes(name) || toldOfLists.includes(name);
  expect(leaves.length).toBeGreaterThan(150);
  expect(leaves.filter((name) => !isTold(name) && !(name in neverTold))).toEqual([]);
  expect(Object.keys(neverTold).filter((name) => !leaves.includes(name) || isTold(name))).toEqual([]);
});
