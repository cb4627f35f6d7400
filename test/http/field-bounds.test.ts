import { expect, test } from "vitest";
import { send, sharedServer } from "../support/http/http-server.js";

const server = sharedServer();
const pools = ["POST /browser_pools", "PATCH /browser_pools/herd"] as const;
const browsers = ["POST /browsers"] as const;
type Operation = (typeof pools)[number] | (typeof browsers)[number];
/** What each has to have besides. */
const needed: Readonly<Record<Operation, object>> = {
  "POST /browser_pools": { size: 1 },
  "PATCH /browser_pools/herd": {},
  "POST /browsers": {},
};

const named = (count: number) => Array.from({ length: count }, (_, at) => ({ name: `n${at}` }));
const tags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`t${at}`, "x"]));
const urlOf = (length: number): string => "https://a.example/".padEnd(length, "x");
const idle = { good: [10, 259_200], bad: [9, 259_201, 0, 60.5] };

/** The numbers are written out: those of the code are what is held against them. */
const rows = [
  { at: pools, field: "size", good: [1], bad: [0, -1, 1.5] },
  { at: pools, field: "fill_rate_per_minute", good: [0, 0.5, 25], bad: [-1, -0.1] },
  { at: pools, field: "start_url", good: [urlOf(2048)], bad: [urlOf(2049)] },
  { at: [...pools, ...browsers], field: "timeout_seconds", ...idle },
  { at: [...pools, ...browsers], field: "extensions", good: [[], named(20)], bad: [named(21)] },
  {
    at: [...pools, ...browsers],
    field: "name",
    good: ["a".repeat(255), "aZ09._-"],
    bad: ["a".repeat(256), "a b", "ä"],
  },
  { at: browsers, field: "tags", good: [{}, tags(50)], bad: [tags(51)] },
  { at: browsers, field: "vaults", good: [[], named(20)], bad: [named(21)] },
] as const satisfies readonly {
  readonly at: readonly Operation[];
  readonly field: string;
  readonly good: readonly unknown[];
  readonly bad: readonly unknown[];
}[];

test.each(rows.flatMap(({ at, ...row }) => at.map((operation) => [operation, row.field, row] as const)))(
  "%s takes a %s up to its bounds and none beyond them",
  async (operation, field, { good, bad }) => {
    const [method = "", path = ""] = operation.split(" ");
    const ask = (value: unknown) =>
      send(server().url + path, { method, body: { ...needed[operation], [field]: value } });
    for (const value of good) expect((await ask(value)).status, JSON.stringify(value)).toBeLessThan(300);
    for (const value of bad)
      expect(await ask(value), JSON.stringify(value)).toMatchObject({
        status: 400,
        body: { code: "bad_request", details: [{ message: expect.stringContaining(field) }] },
      });
  },
);
