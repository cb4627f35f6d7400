import { expect, test } from "vitest";
import type { NewEntry } from "../../src/audit/entry.js";
import { UnknownCallers } from "../../src/audit/unknown-callers.js";
import { newEntry } from "../support/audit/audit-bed.js";
import { DrivenClock } from "../support/driven-clock.js";

function openLog(mostOfEach: number, mostOfAll: number) {
  const clock = new DrivenClock();
  const entries: NewEntry[] = [];
  const intents: string[] = [];
  let folded = 0;
  const log = new UnknownCallers({
    recorder: {
      record: (entry) => void entries.push(entry),
      recordNow: async (entry) => void entries.push(entry),
      begin: async (intent) => void intents.push(intent),
    },
    clock,
    meter: { folded: (count) => void (folded += count) },
    mostOfEach,
    mostOfAll,
  });
  const ask = (count: number, over: Partial<NewEntry> = {}): void => {
    for (let at = 0; at < count; at += 1)
      log.record(newEntry({ ...unknown, receivedAt: clock.monotonic(), ...over }));
  };
  /** What was recorded since it was asked last. */
  const taken = () => entries.splice(0).map(({ clientIp, status, path }) => [clientIp, status, path]);
  return { clock, log, entries, intents, ask, taken, folded: () => folded };
}
const unknown = { authStrategy: "none", userId: "", email: "", status: 401, path: "/browsers" } as const;
const [one, other] = ["203.0.113.1", "203.0.113.2"];

test("what an address sends beyond its entries is counted in one of each status, when the minute is over", async () => {
  const { clock, ask, taken, folded, entries } = openLog(2, 100);
  ask(5, { clientIp: one });
  await clock.advance(1000);
  ask(1, { clientIp: one, status: 404, path: "/nowhere" });
  ask(2, { clientIp: one, userAgent: "another" });
  ask(2, { clientIp: other });
  expect(taken()).toEqual([
    [one, 401, "/browsers"],
    [one, 401, "/browsers"],
    [other, 401, "/browsers"],
    [other, 401, "/browsers"],
  ]);
  await clock.advance(59_000);
  expect(entries[0]).toMatchObject({ receivedAt: 0, durationMs: 1003, route: "", userAgent: "test" });
  expect(taken()).toEqual([
    [one, 401, "(5 requests)"],
    [one, 404, "/nowhere"],
  ]);
  expect(folded()).toBe(6);
  ask(1, { clientIp: one });
  expect(taken()).toEqual([[one, 401, "/browsers"]]);
});

test("who is let in has an entry each, whatever comes beside; a lease's URL that is refused is not let in", () => {
  const { ask, taken } = openLog(1, 1);
  ask(1, { clientIp: one });
  const known = { clientIp: one, authStrategy: "api_key", status: 403 };
  ask(3, known);
  ask(3, { clientIp: one, authStrategy: "lease", status: 101 });
  ask(3, { clientIp: one, authStrategy: "lease", status: 410 });
  expect(taken().map(([, status]) => status)).toEqual([401, 403, 403, 403, 101, 101, 101]);
});

test("a key that is no longer good is known, and not let in: what is refused to it has the bound too, and stays its user's", async () => {
  const { clock, ask, taken, entries } = openLog(2, 100);
  ask(5, { clientIp: one, authStrategy: "api_key", userId: "ada" });
  expect(taken()).toEqual([
    [one, 401, "/browsers"],
    [one, 401, "/browsers"],
  ]);
  await clock.advance(60_000);
  expect(entries.map(({ userId }) => userId)).toEqual(["ada"]);
  expect(taken()).toEqual([[one, 401, "(3 requests)"]]);
});

test("a caller who is told 429 has as many entries as an unknown one, beside those; what was counted says whose they are", async () => {
  const { clock, ask, taken, entries } = openLog(2, 100);
  const known = { clientIp: one, authStrategy: "api_key", email: "" };
  ask(3, { clientIp: one });
  for (const userId of ["ada", "ada", "ada", "ada", "bob"]) ask(1, { ...known, userId, status: 429 });
  ask(3, { ...known, status: 403 });
  expect(taken().map(([, status]) => status)).toEqual([401, 401, 429, 429, 403, 403, 403]);
  await clock.advance(60_000);
  expect(entries.map(({ userId, status, path }) => [userId, status, path])).toEqual([
    ["", 401, "/browsers"],
    ["ada", 429, "(2 requests)"],
    ["bob", 429, "/browsers"],
  ]);
});

test("an IPv6 network is one address; however many there are, their entries have a bound", async () => {
  const { clock, ask, taken, entries } = openLog(2, 300);
  ask(1, { clientIp: "2001:db8::1" });
  ask(1, { clientIp: "2001:db8::2" });
  ask(1, { clientIp: "2001:db8::3" });
  for (let at = 0; at < 2000; at += 1) ask(1, { clientIp: `10.1.${at >> 8}.${at & 255}` });
  expect(taken()).toHaveLength(300);
  await clock.advance(60_000);
  expect(entries).toHaveLength(101);
  expect(taken()[0]).toEqual(["2001:db8::3", 401, "/browsers"]);
  ask(1, { clientIp: "10.2.0.1" });
  expect(taken()).toHaveLength(1);
});

test("what was counted is recorded when the daemon stops; changes wait for their entries as ever", async () => {
  const { log, intents, ask, taken } = openLog(1, 1);
  ask(4, { clientIp: one });
  await log.recordNow(newEntry({ path: "/org/api_keys" }));
  await log.begin("intent", newEntry());
  expect(intents).toEqual(["intent"]);
  // What was refused at its begin takes the place of its own intent, and of no other's.
  for (const intent of ["a", "b"]) ask(1, { clientIp: one, authStrategy: "form", status: 503, intent });
  expect(taken().filter(([, status]) => status === 503)).toHaveLength(2);
  log.flush();
  expect(taken()).toEqual([[one, 401, "(3 requests)"]]);
});
