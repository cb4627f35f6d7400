import { afterEach, expect, test } from "vitest";
import { refusal } from "../../src/base/errors.js";
import { newLeaseId, newRequestId, type BrowserId, type LeaseId } from "../../src/base/ids.js";
import type { Slot } from "../../src/node/slot.js";
import { fillOwner, type PageFill } from "../../src/spec/page-fill.js";
import { PipeClient } from "../support/browser/chromium-client.js";
import { fillOf, type FillSite, openFillSite, valuesOf } from "../support/browser/fill/fill-bed.js";
import { login } from "../support/browser/fill/fill-case.js";
import { bedSeal, type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { isHeldAfter } from "../support/node/one-slot.js";
import { PoolBed } from "../support/store/pool-bed.js";

let node: NodeBed | undefined;
let site: FillSite | undefined;
afterEach(async () => {
  await site?.close();
  await node?.close();
  node = site = undefined;
});

const control = "control" as never;
const given = fillOf({
  fields: [
    ["#user", "secret-1"],
    ["#password", "secret-2"],
  ],
});

interface Lent {
  readonly bed: NodeBed;
  readonly pool: PoolBed;
  readonly slot: Slot;
  readonly lease: LeaseId;
  readonly client: PipeClient;
}

async function lent(
  over: Parameters<typeof PoolBed.create>[1] = {},
  options: Parameters<typeof openNodeBed>[1] = {},
): Promise<Lent> {
  const bed = (node = await openNodeBed("pagefills", { isReal: true, isDriven: true, ...options }));
  const pool = await PoolBed.create(bed.bed, { size: 1, ...over });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await bed.launch(browser);
  const held = await pool.lend();
  const slot = bed.slots.find(held.id);
  if (!slot) throw new Error("no slot");
  return { bed, pool, slot, lease: held.lease, client: new PipeClient(slot.chromium) };
}

const ask = (
  { leaseCommands }: NodeBed,
  { browser, lease, sealed }: { browser: BrowserId; lease: LeaseId; sealed: string },
  question = newRequestId(),
) =>
  leaseCommands.receiveDirectly({
    kind: "ask",
    question,
    control,
    browser,
    lease,
    what: { kind: "fill", sealed },
  });
const sealedFor = (slot: Slot, lease: LeaseId, fill: PageFill = given): string =>
  bedSeal.close(JSON.stringify(fill), fillOwner(slot.id, lease));

test("a node fills for the lease that a fill was sealed for, and once, however often it is asked", async () => {
  const { bed, slot, lease, client } = await lent();
  site = await openFillSite();
  site.serve({ body: login });
  const session = await client.attach();
  // The bed's egress lets no page out.
  await client.send(
    "Page.setDocumentContent",
    { frameId: (await client.targets())[0]?.targetId, html: login },
    session,
  );
  const asked = { browser: slot.id, lease, sealed: sealedFor(slot, lease) };
  const question = newRequestId();
  const [first, second] = await Promise.all([ask(bed, asked, question), ask(bed, asked, question)]);
  expect(first).toBe(second);
  const payload = first?.isDone === true ? (first.payload ?? "") : "";
  expect(JSON.parse(payload)).toMatchObject({ kind: "ended", status: "completed" });
  expect(await valuesOf(client)).toEqual({ user: "secret-1", password: "secret-2" });
});

test("one that was sealed for another lease, with another secret, or is damaged is not opened", async () => {
  const { bed, slot, lease, client } = await lent();
  const session = await client.attach();
  await client.send(
    "Page.setDocumentContent",
    { frameId: (await client.targets())[0]?.targetId, html: login },
    session,
  );
  for (const sealed of [
    sealedFor(slot, newLeaseId()),
    sealedFor(slot, lease).slice(0, -3),
    "v1.00000000.AAAA",
    "",
  ])
    expect(await ask(bed, { browser: slot.id, lease, sealed })).toMatchObject({ isDone: false });
  expect(
    await ask(bed, { browser: slot.id, lease: newLeaseId(), sealed: sealedFor(slot, lease) }),
  ).toMatchObject({ isDone: false });
  expect(await valuesOf(client)).toEqual({});
});

test("one that has waited for a restart and comes too late by then writes nothing", async () => {
  let isLate = false;
  const late = refusal("node_silent");
  const { bed, slot, lease, client } = await lent(
    {},
    { refuseLate: async () => (isLate ? late : undefined) },
  );
  const session = await client.attach();
  await client.open(`data:text/html,${encodeURIComponent(login)}`, session);
  const over = slot.restartBegins();
  const asked = ask(bed, { browser: slot.id, lease, sealed: sealedFor(slot, lease) });
  await expect.poll(() => slot.activity.registrations).toBe(1);
  isLate = true;
  over();
  expect(await asked).toEqual({ isDone: false, code: "node_silent", text: late.message });
  expect(await valuesOf(client)).toEqual({});
});

test("where it is to be protected, no document is filled but the one that is watched", async () => {
  const { bed, slot, lease, client } = await lent();
  const session = await client.attach();
  const at = (name: string): string => `data:text/html,<title>${name}</title>${encodeURIComponent(login)}`;
  await client.open(at("one"), session);
  const { chromium } = slot;
  const watch = chromium.watchNavigation.bind(chromium);
  chromium.watchNavigation = async (watched) => {
    await watch(watched);
    await client.open(at("two"), session);
  };
  const sealed = sealedFor(slot, lease, { ...given, protect_filled: true });
  const got = await ask(bed, { browser: slot.id, lease, sealed });
  expect(JSON.parse(got?.isDone === true ? (got.payload ?? "") : "")).toMatchObject({
    status: "failed",
    fields: [{ status: "failed", error_code: "target_changed" }, { status: "not_attempted" }],
  });
  expect(await valuesOf(client)).toEqual({});
  expect(slot.bridge.filled.hasPages).toBe(false);
});

test("a page that asks something while it is filled and protected is answered, where no client could", async () => {
  const { bed, slot, lease, client } = await lent();
  const asking = `${login}<script>addEventListener("input", () => confirm("Really?"))</script>`;
  await client.open(`data:text/html,${encodeURIComponent(asking)}`, await client.attach());
  const sealed = sealedFor(slot, lease, { ...given, protect_filled: true });
  const got = await ask(bed, { browser: slot.id, lease, sealed });
  const payload = got?.isDone === true ? (got.payload ?? "") : "";
  expect(JSON.parse(payload)).toMatchObject({ kind: "ended", status: "completed" });
  expect(client.events.map(({ method }) => method)).toContain("Page.javascriptDialogOpening");
});

test.each(["fill", "navigate"] as const)(
  "a %s is activity: the lease has its whole timeout once it is done",
  async (kind) => {
    const { bed, pool, slot, lease } = await lent({ timeout_seconds: 20 });
    await bed.reconciler.look();
    expect(await isHeldAfter({ bed, pool, slot }, 15_000)).toBe(true);
    const fill = { kind: "fill", sealed: sealedFor(slot, lease, { ...given, timeout_ms: 1 }) } as const;
    const what = kind === "fill" ? fill : ({ kind, url: "about:blank" } as const);
    const question = newRequestId();
    const asked = { kind: "ask", question, control, browser: slot.id, lease, what } as const;
    expect(await bed.leaseCommands.receiveDirectly(asked)).toMatchObject({ isDone: true });
    await pool.age(30_000);
    expect(await isHeldAfter({ bed, pool, slot }, 19_000)).toBe(true);
    expect(await isHeldAfter({ bed, pool, slot }, 1000)).toBe(false);
  },
);
