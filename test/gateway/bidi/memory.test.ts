import { expect, onTestFinished, test } from "vitest";
import { openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { mappersOf } from "../../support/gateway/mappers.js";
import { connectBidi } from "../../support/gateway/raw-bidi.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { isLiving } from "../../support/living.js";

const mebibyte = 2 ** 20;

test("a client that fills its mapper with more than its browser may have loses the mapper, and not the browser", async (context) => {
  const browser = await openGatewayBrowser(
    { memoryBytes: 512 * mebibyte },
    { limits: { bidiHeapBytes: 4096 * mebibyte } },
  );
  onTestFinished(() => browser.close());
  if (browser.chromium.isolation.limits.memory === "watch")
    return context.skip("no cgroup counts memory here");
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
  await expect.poll(() => isLiving(pid), { timeout: 10_000 }).toBe(false);
  const cdp = await connectRaw(browser.url());
  expect((await cdp.send("Browser.getVersion")).result).toBeDefined();
  expect(await cdp.evaluate("6 * 7", await cdp.attach())).toBe(42);
  await cdp.close();
});
