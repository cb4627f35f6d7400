import { afterEach, beforeEach, expect, test } from "vitest";
import type { Done, Refusal } from "../../src/base/errors.js";
import { type Digest, newExtensionId, newLeaseId } from "../../src/base/ids.js";
import type { NodeReply } from "../../src/pool/ports/messages.js";
import { SessionReader } from "../../src/pool/launch-templates.js";
import type { PoolSpec } from "../../src/spec/launch-template.js";
import { makeAddExtensions, makeFindUploadTarget } from "../../src/lease/add-extensions.js";
import type { SentExtension } from "../../src/pool/operations.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { type Held, PoolBed } from "../support/store/pool-bed.js";

let control: ControlBed;
let count = 0;
/** What was done, in order. */
let journal: string[] = [];
let faults: Record<string, string[]> = {};
let answer: NodeReply = { kind: "done" };
let asked: unknown[] = [];
let whileReceiving: () => Promise<unknown> = async () => {};
let whileKeeping: () => Promise<unknown> = async () => {};
beforeEach(async () => {
  control = await openControlBed(`session-extensions${(count += 1)}`);
  [journal, faults, answer, asked, whileReceiving, whileKeeping] = [
    [],
    {},
    { kind: "done" },
    [],
    async () => {},
    async () => {},
  ];
});
afterEach(() => control.close());

async function held(over: Partial<PoolSpec> = {}): Promise<{ pool: PoolBed; lent: Held }> {
  const pool = await PoolBed.filled(control.bed, { size: 1, ...over });
  return { pool, lent: await pool.lend() };
}

async function lendAnew(pool: PoolBed, lent: Held): Promise<void> {
  await pool.connect(lent);
  await pool.release(lent);
  await pool.freed(lent.id);
  await pool.lend();
}

const sent = (...names: string[]): SentExtension[] =>
  names.map((name) => ({ name, path: `/staging/${name}`, digest: name.repeat(64).slice(0, 64) as Digest }));

/** Adds extensions as the route does, which reads the body between the two calls. */
async function add(
  ref: string,
  items: readonly SentExtension[],
  caller = callerOf(),
): Promise<Done<null> | Refusal> {
  const { bed } = control;
  const sessionReader = new SessionReader(bed.poolStore, { proxies: bed.proxies, profiles: bed.profiles });
  const sessions = { poolStore: bed.poolStore, projects: bed.projects, sessionReader };
  const run = makeAddExtensions({
    ...sessions,
    clock: control.clock,
    answerLimitMs: 55_000,
    async faultsOf(path) {
      journal.push(`checked ${path}`);
      return faults[path] ?? [];
    },
    async keep(digest, path) {
      await whileKeeping();
      journal.push(`kept ${path} ${digest.slice(0, 1)}`);
    },
    async askNode(browser, what, limitMs) {
      journal.push("asked");
      asked.push({ browser: browser.id, lease: browser.lease.id, what, limitMs });
      return answer;
    },
  });
  const target = await makeFindUploadTarget(sessions)(ref, caller);
  if (target.kind === "refused") return target;
  journal.push("received");
  await whileReceiving();
  return await run(target.value, items, caller);
}

test("all archives are checked before any is kept, and all are kept before the node is asked", async () => {
  const { lent } = await held();
  expect(await add(lent.id, sent("a", "b"))).toEqual({ kind: "done", value: null });
  expect(journal).toEqual([
    "received",
    "checked /staging/a",
    "checked /staging/b",
    "kept /staging/a a",
    "kept /staging/b b",
    "asked",
  ]);
  const items = [
    { name: "a", digest: "a".repeat(64) },
    { name: "b", digest: "b".repeat(64) },
  ];
  expect(asked).toEqual([
    { browser: lent.id, lease: lent.lease, what: { kind: "extensions", items }, limitMs: 55_000 },
  ]);
});

test("an upload concerns its session once, and not whoever gets the browser while it arrives", async () => {
  const { pool, lent } = await held();
  const concerned: unknown[] = [];
  const caller = callerOf({ concerns: (lease) => void concerned.push(lease) });
  expect(await add(lent.id, sent("a"), caller)).toMatchObject({ kind: "done" });
  const meant = { browser: lent.id, lease: lent.lease };
  expect(concerned).toMatchObject([meant]);
  whileReceiving = () => lendAnew(pool, lent);
  expect(await add(lent.id, sent("a"), caller)).toMatchObject({ code: "lease_superseded" });
  expect(concerned).toMatchObject([meant, meant]);
});

test("one archive that no browser could load keeps all of them out, and every fault of every one is told", async () => {
  const { lent } = await held();
  faults = { "/staging/b": ["manifest.json: is missing", "x: is a link"], "/staging/c": ["is not a zip"] };
  expect(await add(lent.id, sent("a", "b", "c"))).toMatchObject({
    code: "bad_request",
    details: [
      { message: "b: manifest.json: is missing" },
      { message: "b: x: is a link" },
      { message: "c: is not a zip" },
    ],
  });
  expect(journal).toEqual(["received", "checked /staging/a", "checked /staging/b", "checked /staging/c"]);
});

test("nothing is read for a session that is not there, is held by another lease, or can have no extensions", async () => {
  const { lent } = await held();
  const shell = await held({ engine: "headless-shell" });
  expect(await add("nobody", sent("a"))).toMatchObject({ code: "browser_not_found" });
  expect(await add(lent.id, sent("a"), callerOf({ lease: newLeaseId() }))).toMatchObject({
    code: "lease_superseded",
  });
  expect(await add(shell.lent.id, sent("a"))).toMatchObject({ code: "not_supported" });
  expect(journal).toEqual([]);
  expect(await add(lent.id, sent("a"), callerOf({ lease: lent.lease }))).toMatchObject({ kind: "done" });
});

test("who gets the browser while the archives arrive is not given them", async () => {
  const { pool, lent } = await held();
  whileReceiving = () => lendAnew(pool, lent);
  expect(await add(lent.id, sent("a"))).toMatchObject({ code: "lease_superseded" });
  expect(asked).toEqual([]);
});

test("a session that ends while the archives arrive is not found", async () => {
  const { pool, lent } = await held();
  whileReceiving = () => pool.release(lent, { reuse: false });
  expect(await add(lent.id, sent("a"))).toMatchObject({ code: "browser_not_found" });
  expect(asked).toEqual([]);
});

test("a caller who goes before the node is asked has changed nothing", async () => {
  const { lent } = await held();
  const gone = new AbortController();
  whileKeeping = async () => gone.abort();
  expect(await add(lent.id, sent("a"), callerOf({ gone: gone.signal }))).toMatchObject({ kind: "refused" });
  expect(asked).toEqual([]);
});

test.each<[NodeReply, object]>([
  [
    { kind: "failed", text: "a: Chromium says no", code: "bad_request" },
    { code: "bad_request", message: "a: Chromium says no" },
  ],
  [
    { kind: "failed", text: "it broke" },
    { code: "extension_failed", message: "it broke" },
  ],
  [{ kind: "failed" }, { code: "extension_failed" }],
  [{ kind: "silent" }, { code: "node_silent" }],
])("the node's answer %j is passed on", async (given, expected) => {
  const { lent } = await held();
  answer = given;
  expect(await add(lent.id, sent("a"))).toMatchObject(expected);
});

test("with those of its launch a browser has at most twenty", async () => {
  const { lent } = await held({ extension_ids: Array.from({ length: 18 }, newExtensionId) });
  expect(await add(lent.id, sent("a", "b", "c"))).toMatchObject({
    code: "bad_request",
    details: [{ message: "extensions: the browser would have 21 of them, and may have 20" }],
  });
  expect(asked).toEqual([]);
  expect(await add(lent.id, sent("a", "b"))).toMatchObject({ kind: "done" });
});

test("what checking and keeping takes is the node's no more, and has a limit of its own", async () => {
  const { lent } = await held();
  whileKeeping = () => control.clock.advance(10_000);
  expect(await add(lent.id, sent("a", "b"))).toMatchObject({ kind: "done" });
  expect(asked).toEqual([expect.objectContaining({ limitMs: 35_000 })]);
  let release = (): void => {};
  whileKeeping = () =>
    new Promise<void>((resolve) => {
      release = resolve;
      void control.clock.advance(27_500);
    });
  expect(await add(lent.id, sent("a"))).toMatchObject({ code: "extension_failed" });
  expect(asked).toHaveLength(1);
  release();
});

test("archives that cannot be kept fail the whole", async () => {
  const { lent } = await held();
  whileKeeping = () => Promise.reject(new Error("the disk is full"));
  await expect(add(lent.id, sent("a"))).rejects.toThrow("the disk is full");
  expect(asked).toEqual([]);
});
