import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";

let daemon: Daemon;
beforeAll(async () => {
  daemon = await startDaemon();
});
afterAll(() => daemon.stop());

const on = { enabled: true };
const pages = { enabled: true, browser: { page: on } };
const acquire = async (pool: string, body: object = {}): Promise<Lease> =>
  (await daemon.call(`POST /browser_pools/${pool}/acquire`, { acquire_timeout_seconds: 30, ...body }))
    .body as Lease;
const release = (pool: string, { session_id }: Lease) =>
  daemon.call(`POST /browser_pools/${pool}/release`, { session_id });

interface Told {
  readonly event: { readonly type: string; readonly data: { readonly url?: string } };
}
/** What a session's pages have navigated to, once it is so much. */
const navigationsWhen = ({ session_id: session }: Lease, count: number): Promise<readonly unknown[]> =>
  until("navigations are told", async () => {
    const { body } = await daemon.call(`GET /browsers/${session}/telemetry/events?category=page`);
    const told = (body as Told[]).filter(({ event }) => event.type === "page_navigation");
    return told.length >= count ? told.map(({ event }) => event.data.url) : undefined;
  });
/** As fast as a client can. */
async function navigateAtOnce({ cdp_ws_url: url }: Lease, to: string): Promise<void> {
  const client = await connectRaw(url);
  await client.send("Page.navigate", { url: to }, await client.attach());
  await client.close();
}

test("what the first client of a lease opens at once is told, each time", async () => {
  await daemon.makePool({ name: "first", telemetry: pages });
  for (let turn = 0; turn < 10; turn += 1) {
    const lease = await acquire("first");
    await navigateAtOnce(lease, `data:text/plain,${turn}`);
    expect(await navigationsWhen(lease, 1)).toEqual([`data:text/plain,${turn}`]);
    await release("first", lease);
  }
});

test("so is the acquire's own start page", async () => {
  await daemon.makePool({ name: "started", telemetry: pages });
  for (let turn = 0; turn < 5; turn += 1) {
    const lease = await acquire("started", { start_url: `data:text/plain,start${turn}` });
    expect(await navigationsWhen(lease, 1)).toEqual([`data:text/plain,start${turn}`]);
    await release("started", lease);
  }
});

test("a PATCH is in force when it is answered", async () => {
  await daemon.makePool({ name: "patched" });
  for (let turn = 0; turn < 5; turn += 1) {
    const lease = await acquire("patched");
    const client = await connectRaw(lease.cdp_ws_url);
    const page = await client.attach();
    const { status } = await daemon.call(`PATCH /browsers/${lease.session_id}`, { telemetry: pages });
    expect(status).toBe(200);
    await client.send("Page.navigate", { url: `data:text/plain,${turn}` }, page);
    expect(await navigationsWhen(lease, 1)).toEqual([`data:text/plain,${turn}`]);
    await client.close();
    await release("patched", lease);
  }
});
