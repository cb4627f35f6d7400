import { expect, onTestFinished, test } from "vitest";
import type { Chromium } from "../../../src/browser/chromium.js";
import { findHierarchies } from "../../../src/browser/resources/cgroup-hierarchy.js";
import { openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { mappersOf } from "../../support/gateway/mappers.js";
import { connectBidi } from "../../support/gateway/raw-bidi.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { isLiving } from "../../support/living.js";

const mebibyte = 2 ** 20;

const isRoot = process.getuid?.() === 0;
const countsMemory =
  isRoot && (await findHierarchies()).some(({ controllers }) => controllers.includes("memory"));

test("a client that fills its mapper's heap loses the mapper, and not the browser", () => fill(64));

test.runIf(countsMemory)(
  "a client that fills its mapper with more than its browser may have loses the mapper, and not the browser",
  async () => expect((await fill(4096)).isolation.limits.memory).toMatch(/^cgroup-v/),
  240_000,
);

/** Fills a mapper of a browser with 512 MiB until it ends; `heap` is what its JavaScript may have, in MiB. */
async function fill(heap: number): Promise<Chromium> {
  const browser = await openGatewayBrowser(
    { memoryBytes: 512 * mebibyte },
    // At the usual rate it would take most of a minute to send as much.
    { limits: { bidiHeapBytes: heap * mebibyte, clientBytesPerSecond: 1024 * mebibyte } },
  );
  onTestFinished(() => browser.close());
  const client = await connectBidi(browser.bidi());
  await client.begin();
  const [pid = 0] = mappersOf(process.pid);
  // The mapper keeps the channel of each subscription, and tells Chromium nothing of it.
  const params = { events: ["log.entryAdded"] };
  for (let id = 100; id < 180 && client.socket.readyState === client.socket.OPEN; id += 1) {
    const channel = `${id}${"x".repeat(8 * mebibyte)}`;
    const message = JSON.stringify({ id, method: "session.subscribe", params, "goog:channel": channel });
    await new Promise((resolve) => client.socket.send(message, resolve));
  }
  expect((await client.closed).code).toBe(1011);
  await expect.poll(() => isLiving(pid)).toBe(false);
  const cdp = await connectRaw(browser.url());
  expect((await cdp.send("Browser.getVersion")).result).toBeDefined();
  expect(await cdp.evaluate("6 * 7", await cdp.attach())).toBe(42);
  await cdp.close();
  return browser.chromium;
}
