import { expect, test } from "vitest";
import { openSite } from "../support/browser/chromium-site.js";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import { spawnDaemon } from "../support/daemon/daemon-process.js";
import { DaemonPlace } from "../support/daemon/daemon-settings.js";
import { bidiClients } from "../support/gateway/bidi-clients.js";
import { mappersOf, programsUnder } from "../support/gateway/mappers.js";
import { connectBidi } from "../support/gateway/raw-bidi.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { isLiving } from "../support/living.js";

test("a daemon that is killed leaves no mapper, and its log tells no token of BiDi's addresses", async () => {
  const place = new DaemonPlace({});
  const killed = await spawnDaemon(place);
  await killed.makePool({ name: "bidi" });
  const { body } = await killed.call("POST /browser_pools/bidi/acquire", { acquire_timeout_seconds: 30 });
  const { webdriver_ws_url: url } = body as Lease;
  const client = await connectBidi(url);
  expect(await client.evaluate(await client.begin(), "6 * 7")).toBe(42);
  for (const wrong of [url.replace(/.$/, "x"), url.replace("/session?", "/nothing?")]) {
    const http = wrong.replace("ws:", "http:");
    expect((await fetch(http, { method: "POST", body: "{}" })).status).toBeGreaterThanOrEqual(400);
  }
  const mappers = mappersOf(killed.pid);
  expect(mappers).toHaveLength(1);
  await killed.end("SIGKILL");
  expect((await client.closed).code).toBe(1006);
  await until("the end of the mapper", () => !mappers.some(isLiving));
  await (await spawnDaemon(place)).stop(killed.log);
});

test("a browser that only clients of CDP drive has no mapper, and as many processes and targets after one of BiDi as before", async () => {
  const daemon = await spawnDaemon(new DaemonPlace({}));
  await daemon.makePool({ name: "bidi" });
  const { body } = await daemon.call("POST /browser_pools/bidi/acquire", { acquire_timeout_seconds: 30 });
  const { cdp_ws_url: cdpUrl, webdriver_ws_url: bidiUrl } = body as Lease;
  const cdp = await connectRaw(cdpUrl);
  expect(await cdp.evaluate("6 * 7", await cdp.attach())).toBe(42);
  const look = async () => {
    const { result } = await cdp.send("Target.getTargets");
    const programs = programsUnder(daemon.pid);
    return {
      mappers: mappersOf(daemon.pid).length,
      walls: programs.filter((name) => name === "bwrap").length,
      targets: ((result?.["targetInfos"] ?? []) as { targetId: string }[]).map(({ targetId }) => targetId),
    };
  };
  const before = await look();
  expect(before).toMatchObject({ mappers: 0, targets: [expect.any(String)] });
  const client = await connectBidi(bidiUrl);
  await client.begin();
  // A mapper is a process and no page.
  const { mappers, targets } = await look();
  expect([mappers, targets]).toEqual([1, before.targets]);
  await client.close();
  await expect.poll(look).toEqual(before);
  await cdp.close();
  await daemon.stop();
});

test("a daemon that stops closes its clients of BiDi and leaves nothing of them", async () => {
  const daemon = await spawnDaemon(new DaemonPlace({}));
  await daemon.makePool({ name: "bidi" });
  const { body } = await daemon.call("POST /browser_pools/bidi/acquire", { acquire_timeout_seconds: 30 });
  const client = await connectBidi((body as Lease).webdriver_ws_url);
  await client.begin();
  const mappers = mappersOf(daemon.pid);
  await daemon.stop();
  expect((await client.closed).code).toBe(1001);
  expect(mappers.filter(isLiving)).toEqual([]);
});

test("Puppeteer, Selenium and WebdriverIO drive what an acquire names, each one's end leaving the session", async () => {
  const site = await openSite();
  const daemon = await spawnDaemon(new DaemonPlace({ file: { egress: { private_hosts: ["127.0.0.1"] } } }));
  await daemon.makePool({ name: "bidi" });
  const { body } = await daemon.call("POST /browser_pools/bidi/acquire", { acquire_timeout_seconds: 30 });
  const { webdriver_ws_url: url, session_id: session } = body as Lease;
  for (const { visit } of bidiClients) {
    expect(await visit(url, site.origin)).toEqual({ title: "site", console: "said" });
    expect((await daemon.call(`GET /browsers/${session}`)).body).toMatchObject({ webdriver_ws_url: url });
  }
  await daemon.stop();
  await site.close();
});
