import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { policyNames } from "../../src/spec/policies/policy-table.js";

const root = join(import.meta.dirname, "../..");
interface Read {
  readonly majorVersion: number;
  readonly types: Readonly<Record<string, string>>;
}
interface Part {
  readPolicyTypes(executable: string): Promise<Read>;
  sourceOf(read: Read): string;
}
const load = <Type>(name: string): Promise<Type> =>
  import(join(root, "scripts/bootstrap", name)) as Promise<Type>;
const { readPolicyTypes, sourceOf } = await load<Part>("policy-table.mjs");
const { tools } = await load<{ tools: { chromium: { places: string[] } } }>("system.mjs");

const source = readFileSync(join(root, "src/spec/policies/policy-table.ts"), "utf8");
const kept = {
  majorVersion: Number(/^\/\/ Written .* Chromium (\d+) /.exec(source)?.[1]),
  types: Object.fromEntries(
    Object.entries(policyNames).flatMap(([kind, names]) => names.map((name) => [name, kind])),
  ),
};

test("the table is what the installed Chromium says of itself, where it is of the table's version", async () => {
  const executable = tools.chromium.places.find((place) => existsSync(place)) ?? "";
  const { majorVersion, types } = await readPolicyTypes(executable);
  expect(Object.keys(types).length).toBeGreaterThan(500);
  // Told by chrome://policy alone.
  expect(types).toMatchObject({
    HomepageLocation: "string",
    RestoreOnStartup: "integer",
    SafeBrowsingEnabled: "boolean",
    RestoreOnStartupURLs: "list",
  });
  if (majorVersion === kept.majorVersion) expect(types).toEqual(kept.types);
});

test("the source is written from the table as it stands", () => {
  expect(sourceOf(kept)).toBe(source);
});

test("a name that could not stand in a source is refused", () => {
  expect(() => sourceOf({ majorVersion: 1, types: { "a`b": "boolean" } })).toThrow(
    /names a policy or type that is none/,
  );
  expect(() => sourceOf({ majorVersion: 1, types: { A: "number" } })).toThrow(
    /names a policy or type that is none/,
  );
});
