import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { typesOfDaemons, typesOfPages, typesOfRefusals } from "../support/telemetry/corpus.js";
import { lackedBy, officialEvents } from "../support/telemetry/official-events.js";

const docs = readFileSync(join(import.meta.dirname, "../../docs/telemetry.md"), "utf8");
const official = officialEvents();
const emitted: readonly string[] = [...typesOfPages, ...typesOfDaemons, ...typesOfRefusals];

/** What is emitted and what the official client's types lack: they are of the contract, or our own. */
const additions = [
  "cdp_command",
  "monitor_events_dropped",
  "page_crashed",
  "platform_api_call",
  "proxy_error",
];

/** What each type is said to be in the table whose header begins so: the first cell's names to the rest. */
function rowsBelow(header: string): ReadonlyMap<string, string> {
  const rows = [...docs.matchAll(/^\| ([\w ]+) \|.*\n\|[ -|]+\n((?:\|.*\n)+)/gm)]
    .filter(([, first]) => first === header)
    .flatMap(([, , text = ""]) => text.trimEnd().split("\n"));
  return new Map(
    rows.flatMap((row) => {
      const [, names = "", ...rest] = row.split("|");
      return [...names.matchAll(/`(\w+)`/g)].map(([, type = ""]) => [type, rest.join("|").trim()] as const);
    }),
  );
}

test("the official client knows every type that is emitted, but for those that are added here", () => {
  expect(official.size).toBeGreaterThan(25);
  expect(emitted.filter((type) => !official.has(type)).toSorted()).toEqual(additions);
});

test("every type of the official client is emitted, or docs/telemetry.md says why it does not occur", () => {
  const absent = rowsBelow("does not occur");
  const missing = [...official.keys()].filter((type) => !emitted.includes(type));
  expect([...absent.keys()]).toEqual(expect.arrayContaining(missing));
  expect([...absent.keys()].filter((type) => emitted.includes(type))).toEqual([]);
  expect([...absent].filter(([, why]) => why.length < "| a reason |".length)).toEqual([]);
});

test("docs/telemetry.md names every field that the official client's types require", () => {
  const documented = rowsBelow("type");
  // What a report of a captcha has is in a table of its own.
  const fieldsOf = (type: string): string =>
    type === "captcha_solve_result" ? [...rowsBelow("field").keys()].map((name) => `\`${name}\``).join() : "";
  const lacking = [...official.values()].flatMap(({ type, required }) => {
    const text = `${documented.get(type) ?? ""}${fieldsOf(type)}`;
    return documented.has(type)
      ? required.filter((field) => !text.includes(`\`${field}\``)).map((field) => `${type} without ${field}`)
      : [];
  });
  expect(lacking).toEqual([]);
});

test("an event without a field that is required, or of another category, is told apart", () => {
  const event = { type: "system_oom_kill", category: "system", data: { pid: 1, process_name: "a" } } as const;
  expect(lackedBy([event, { ...event, category: "page" }])).toEqual([
    "system_oom_kill without rss_kb",
    "system_oom_kill is page",
  ]);
  expect(lackedBy([{ ...event, data: { ...event.data, rss_kb: 1 } }])).toEqual([]);
});

test("a field of another type than the official client says is told apart, and one that is our own is not", () => {
  const data = { pid: "1", process_name: "a", rss_kb: 1, constraint: "memcg", kills: 2 };
  const event = { type: "system_oom_kill", category: "system", data } as const;
  expect(lackedBy([event])).toEqual(['system_oom_kill has pid "1"']);
  expect(lackedBy([{ ...event, data: { ...data, pid: 1, constraint: "other" } }])).toEqual([
    'system_oom_kill has constraint "other"',
  ]);
});
