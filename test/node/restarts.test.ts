import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { Gateway } from "../../src/gateway/gateway.js";
import { defaultGate } from "../../src/gateway/gates/default-gate.js";
import { defaultGatewayLimits } from "../../src/gateway/limits.js";
import { builtJudge, builtMapper } from "../support/gateway/built-judge.js";
import type { Slot } from "../../src/node/slot.js";
import { tokenOf } from "../../src/base/crypto/lease-token.js";
import { until } from "../support/browser/chromium-until.js";
import { openSite, type Site } from "../support/browser/chromium-site.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { bedSecret, getJson } from "../support/gateway/gateway-bed.js";
import { titling } from "../support/node/assets-bed.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { type Held, PoolBed } from "../support/store/pool-bed.js";
import { mappersOf } from "../support/gateway/mappers.js";
import { connectBidi } from "../support/gateway/raw-bidi.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";

let node: NodeBed;
let site: Site;
let count = 0;
const closing: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  [node, site] = await Promise.all([openNodeBed(`restarts${(count += 1)}`, { isReal: true }), openSite()]);
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await node.close();
  await site.close();
});

interface LentBrowser {
  readonly pool: PoolBed;
  readonly held: Held;
  readonly slot: Slot;
  url(rest?: string): string;
}

/** A real browser behind a gateway, lent. */
async function lent(over: Parameters<typeof PoolBed.create>[1] = {}): Promise<LentBrowser> {
  const pool = await PoolBed.create(node.bed, { size: 1, ...over });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await node.launch(browser);
  const held = await pool.lend();
  const slot = node.slots.find(held.id);
  if (!slot) throw new Error(`no slot: ${JSON.stringify((await pool.found()).fill)}`);
  const port = await openGateway(pool);
  return {
    pool,
    held,
    slot,
    url: (rest = "") =>
      `ws://127.0.0.1:${port}/browsers/${held.id}/cdp${rest}?token=${tokenOf(bedSecret, held.id, held.lease)}`,
  };
}

async function openGateway(pool: PoolBed): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const gateway = new Gateway({
    ports: {
      findBrowser: (browser) => node.slots.find(browser),
      findAddress: async () => undefined,
      findEnd: async () => undefined,
      connect: async ({ browser, lease }) => {
        const { kind } = await pool.bed.reports.connect(browser, lease);
        return kind === "connected" ? { kind } : { kind: "gone", reason: "released" };
      },
      metrics: { clientOpened() {}, clientClosed() {}, received() {}, sent() {}, refused() {} },
    },
    clock: systemClock,
    log: silentLog,
    secret: bedSecret,
    publicUrl: `http://127.0.0.1:${port}`,
    gate: defaultGate,
    // A restart takes as long as a busy machine needs for it.
    limits: { ...defaultGatewayLimits, restartMs: 60_000 },
    judgeScript: builtJudge(),
    mapperScript: builtMapper(),
  });
  server.on("upgrade", (request, socket, head) => gateway.upgrade(request, socket, head));
  server.on(
    "request",
    (request, response) => void (gateway.request(request, response) || response.writeHead(404).end()),
  );
  closing.push(async () => {
    await gateway.close();
    server.closeAllConnections();
    await new Promise((resolve) => void server.close(resolve));
  });
  return port;
}

async function titleOf(client: RawCdp, url: string): Promise<unknown> {
  const page = await client.attach();
  await client.send("Page.navigate", { url }, page);
  return await until(
    `the title of ${url}`,
    async () =>
      (await client.evaluate(
        "location.href !== 'about:blank' && document.readyState === 'complete' && document.title",
        page,
      )) || undefined,
  );
}

const upload = async ({ slot, held }: LentBrowser, name: string, word: string) =>
  node.uploads.add(slot, held.lease, [{ name, digest: await node.assets.keep(titling(word)) }]);
const attach = async ({ slot, held }: LentBrowser, isSaved = false) => {
  const id = await node.assets.addProfile();
  return {
    id,
    outcome: await node.changeSession.change(slot, held.lease, { profile: { id, save: isSaved } }),
  };
};

test.each([true, false])(
  "headless %s: an upload drops no client and acts on the next page",
  async (headless) => {
    const lease = await lent({ headless });
    const [one, other] = await Promise.all([connectRaw(lease.url()), connectRaw(lease.url())]);
    expect(await titleOf(one, site.origin)).toBe("site");
    expect(await upload(lease, "titling", "from the extension")).toEqual({ isDone: true });
    expect(await titleOf(other, `${site.origin}/next`)).toBe("from the extension");
    expect([one.socket.readyState, other.socket.readyState]).toEqual([1, 1]);
    await Promise.all([one.close(), other.close()]);
  },
);

test.each([true, false])(
  "headless %s: a restart tells clients why; the URL, the extensions and the viewport are there after it",
  async (headless) => {
    const lease = await lent({
      headless,
      extension_ids: [await node.assets.addExtension("launched", titling("launched"))],
    });
    await upload(lease, "idle", "uploaded");
    const client = await connectRaw(lease.url());
    expect(["launched", "uploaded"]).toContain(await titleOf(client, site.origin));
    node.leaseCommands.receive({
      kind: "ask",
      question: "q" as never,
      control: "c" as never,
      browser: lease.held.id,
      lease: lease.held.lease,
      what: { kind: "change", viewport: { width: 700, height: 500 } },
    });
    const sizeOf = async (from: RawCdp): Promise<string> =>
      String(await from.evaluate("[innerWidth, innerHeight].join()", await from.attach()));
    const size = await until("the viewport", async () => {
      const found = await sizeOf(client);
      return found.startsWith("700,") && found;
    });
    const { outcome } = await attach(lease);
    expect(outcome).toEqual({ isDone: true });
    expect(await client.closed).toEqual({ code: 1012, reason: "the browser restarts with a profile" });
    const again = await connectRaw(lease.url());
    // Chromium answers before the page has its new size.
    await until("the viewport after the restart", async () => (await sizeOf(again)) === size);
    expect(["launched", "uploaded"]).toContain(await titleOf(again, `${site.origin}/after`));
    expect(lease.slot.chromium.extensions.map(({ name }) => name)).toEqual(["launched", "idle"]);
    await again.close();
  },
);

test("a client of BiDi is told of a restart like any other, and its URL opens the new Chromium", async () => {
  const lease = await lent({ headless: true });
  const url = lease.url().replace("/cdp?", "/webdriver/session?");
  const client = await connectBidi(url);
  await client.begin();
  await until("the end of any mapper of a test before", () => mappersOf(process.pid).length === 1);
  expect((await attach(lease)).outcome).toEqual({ isDone: true });
  expect(await client.closed).toEqual({ code: 1012, reason: "the browser restarts with a profile" });
  await until("its mapper's end", () => mappersOf(process.pid).length === 0);
  const again = await connectBidi(url);
  const context = await again.begin();
  await again.open(context, site.origin);
  expect(await again.evaluate(context, "document.title")).toBe("site");
  await again.close();
});

test("who comes during a restart waits for it, and goes on with the new Chromium", async () => {
  const lease = await lent({ headless: true });
  const attaching = attach(lease);
  await until("the restart", () => lease.slot.restarting !== undefined);
  const [clients, list] = await Promise.all([
    Promise.all(Array.from({ length: 5 }, () => connectRaw(lease.url()))),
    getJson(lease.url("/json/list").replace("ws:", "http:")),
  ]);
  expect((await attaching).outcome).toEqual({ isDone: true });
  expect(list.status).toBe(200);
  for (const client of clients) expect((await client.send("Browser.getVersion")).result).toBeDefined();
  await Promise.all(clients.map((client) => client.close()));
});

test("clients that connect all the time over a restart get in, or are told", async () => {
  const lease = await lent({ headless: true });
  const over = new AbortController();
  const ends: { code: number; reason: string }[] = [];
  const come = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const client = await connectRaw(lease.url());
      const answered = client.send("Browser.getVersion");
      const how = await Promise.race([answered, client.closed]);
      if ("code" in how) ends.push(how);
      else await client.close();
    }
  };
  const coming = [come(), come(), come()];
  await until("the first registration", () => lease.slot.activity.registrations > 3);
  expect((await attach(lease)).outcome).toEqual({ isDone: true });
  over.abort();
  await Promise.all(coming);
  expect(ends.filter(({ code }) => code !== 1012)).toEqual([]);
});

test("a profile goes into a browser once, and a repeat is done already", async () => {
  const lease = await lent({ headless: true });
  const { id } = await attach(lease);
  const { pid } = lease.slot.chromium;
  expect(
    await node.changeSession.change(lease.slot, lease.held.lease, { profile: { id, save: false } }),
  ).toEqual({ isDone: true });
  expect((await attach(lease)).outcome).toMatchObject({ code: "profile_loaded" });
  expect(lease.slot.chromium.pid).toBe(pid);
});

test("a profile that is gone: the browser goes on with the state it had", async () => {
  const lease = await lent({ headless: true });
  const client = await connectRaw(lease.url());
  await titleOf(client, site.origin);
  const page = await client.attach();
  await client.evaluate("document.cookie = 'kept=yes; max-age=3600'", page);
  const outcome = await node.changeSession.change(lease.slot, lease.held.lease, {
    profile: { id: "0".repeat(24) as never, save: true },
  });
  expect(outcome).toMatchObject({ isDone: false, text: expect.stringContaining("does not exist any more") });
  expect(lease.slot.profile).toBeUndefined();
  const again = await connectRaw(lease.url());
  await titleOf(again, `${site.origin}/again`);
  expect(await again.evaluate("document.cookie", await again.attach())).toBe("kept=yes");
  await again.close();
});

test("a change that cannot be whole leaves the viewport and the network as they were", async () => {
  const lease = await lent({ headless: true });
  const client = await connectRaw(lease.url());
  const size = async (from: RawCdp): Promise<string> =>
    String(await from.evaluate("[innerWidth, innerHeight].join()", await from.attach()));
  const before = await size(client);
  const viewport = { width: 640, height: 400 };
  const change = (wanted: Parameters<typeof node.changeSession.change>[2]) =>
    node.changeSession.change(lease.slot, lease.held.lease, wanted);
  expect(await change({ viewport, network: { proxy: `{"id":"${"p".repeat(24)}"}` } })).toMatchObject({
    isDone: false,
    code: "conflict",
  });
  expect(await size(client)).toBe(before);
  expect(await change({ viewport, profile: { id: "0".repeat(24) as never, save: false } })).toMatchObject({
    isDone: false,
  });
  await client.closed;
  const again = await connectRaw(lease.url());
  // Chromium answers before the page has its new size.
  await until("the viewport after the restart", async () => (await size(again)) === before);
  expect([lease.slot.viewport, lease.slot.network]).toEqual([undefined, undefined]);
  await again.close();
});

test("a page that is asked for during a restart is dropped where its lease ends meanwhile", async () => {
  const lease = await lent({ headless: true });
  const { slot, held } = lease;
  const opened: string[] = [];
  const runs = slot.runs.bind(slot);
  slot.runs = (running) => {
    running.chromium.navigate = async (url) => void opened.push(url);
    runs(running);
  };
  const attaching = attach(lease);
  await until("the restart", () => slot.restarting !== undefined);
  node.leaseCommands.receive({
    kind: "ask",
    question: "q" as never,
    control: "c" as never,
    browser: held.id,
    lease: held.lease,
    what: { kind: "navigate", url: `${site.origin}/late` },
  });
  await until("the question", () => slot.started?.lease === held.lease);
  const cut = slot.activity.cutLease(held.lease, "released");
  await Promise.all([attaching, cut]);
  await until("its rest", () => !slot.activity.hasVisitors);
  expect(opened).toEqual([]);
});
