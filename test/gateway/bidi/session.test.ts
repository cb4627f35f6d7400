import { expect, onTestFinished, test } from "vitest";
import type { ClientObserver } from "../../../src/gateway/ports.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectBidi } from "../../support/gateway/raw-bidi.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";

// A session is made and ended by its mapper, without a window.
test.each(engines)("%s: a session is made once, told of, and ended; the browser stays", async (_, spec) => {
  const browser = await openGatewayBrowser(spec);
  onTestFinished(() => browser.close());
  const client = await connectBidi(browser.bidi());
  expect((await client.send("session.status")).result).toEqual({ ready: true, message: "" });
  expect(await client.send("browsingContext.getTree")).toMatchObject({ error: "invalid session id" });
  const made = await client.send("session.new", { capabilities: {} });
  expect(made.result).toMatchObject({
    sessionId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    capabilities: { browserName: "chrome", platformName: "linux", acceptInsecureCerts: false },
  });
  expect((await client.send("session.status")).result).toMatchObject({ ready: false });
  expect(await client.send("session.new", { capabilities: {} })).toMatchObject({
    error: "session not created",
  });
  expect((await client.send("session.end")).result).toEqual({});
  expect(await client.closed).toEqual({ code: 1000, reason: "disconnected as asked" });
  const other = await connectBidi(browser.bidi());
  const context = await other.begin();
  expect(await other.evaluate(context, "6 * 7")).toBe(42);
  expect((await other.send("browser.close")).result).toEqual({});
  expect((await other.closed).code).toBe(1000);
  const cdp = await connectRaw(browser.url());
  expect((await cdp.send("Browser.getVersion")).result).toBeDefined();
  await cdp.close();
});

test("whoever listens to clients hears the commands of CDP that BiDi comes to", async () => {
  const browser = await openGatewayBrowser();
  onTestFinished(() => browser.close());
  const heard: string[] = [];
  const over = new Promise<void>((resolve) => {
    browser.bed.observer = {
      opened: ({ protocol }) => void heard.push(`opened by ${protocol}`),
      message: () => {},
      command: (_, { method }) => void heard.push(method),
      closed: (_, end) => {
        heard.push(`closed ${end}`);
        resolve();
      },
      requested: () => {},
    } satisfies ClientObserver;
  });
  const client = await connectBidi(browser.bidi());
  const context = await client.begin();
  await client.open(context, "data:text/html,hello");
  await client.open(context, "file:///etc/passwd");
  await client.close();
  await over;
  expect(heard).toEqual(["opened by bidi", "Page.navigate", "closed left"]);
});
