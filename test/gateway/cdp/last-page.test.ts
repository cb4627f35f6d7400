import { chromium as playwright } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { kinds } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";

describe.each(kinds)("the last page of %s", (_name, spec) => {
  let browser: GatewayBrowser;
  let client: RawCdp;

  beforeAll(async () => {
    browser = await openGatewayBrowser(spec);
    client = await connectRaw(browser.url());
  });

  afterAll(async () => browser.close());

  const pages = async (): Promise<string[]> => {
    const infos = (await client.send("Target.getTargets")).result?.targetInfos as {
      targetId: string;
      type: string;
    }[];
    return infos.filter(({ type }) => type === "page").map(({ targetId }) => targetId);
  };
  const replacedBy = (old: string): Promise<string> =>
    until("one other page", async () => {
      const open = await pages();
      return open.length === 1 && open[0] !== old ? open[0] : undefined;
    });
  const only = async (): Promise<string> => {
    const open = await pages();
    expect(open).toHaveLength(1);
    return open[0] ?? "";
  };

  test("is replaced when it is closed by Target.closeTarget", async () => {
    const last = await only();
    expect((await client.send("Target.closeTarget", { targetId: last })).result).toEqual({ success: true });
    await replacedBy(last);
  });

  test("is replaced when it is closed by Page.close", async () => {
    const last = await only();
    await client.send("Page.close", {}, await client.attach(last));
    await replacedBy(last);
  });

  test("is replaced when it closes itself", async () => {
    const last = await only();
    await client.send(
      "Runtime.evaluate",
      { expression: "window.close()", userGesture: true },
      await client.attach(last),
    );
    await replacedBy(last);
  });

  test("is replaced when Playwright closes every page of the default context", async () => {
    const last = await only();
    const connected = await playwright.connectOverCDP(browser.url());
    await connected.contexts()[0]?.newPage();
    for (const page of connected.contexts()[0]?.pages() ?? []) await page.close();
    await replacedBy(last);
    await connected.close();
  });

  test("is replaced once when two clients close the last two at the same time", async () => {
    const last = await only();
    const other = await connectRaw(browser.url());
    const second = String((await other.send("Target.createTarget", { url: "about:blank" })).result?.targetId);
    await Promise.all([
      client.send("Target.closeTarget", { targetId: last }),
      other.send("Target.closeTarget", { targetId: second }),
    ]);
    expect(await replacedBy(last)).not.toBe(second);
    await other.close();
  });

  test("stays open when a client's own context goes with its page", async () => {
    const last = await only();
    const leaving = await connectRaw(browser.url());
    const { browserContextId } =
      (await leaving.send("Target.createBrowserContext", { disposeOnDetach: true })).result ?? {};
    await leaving.send("Target.createTarget", { url: "about:blank", browserContextId });
    expect(await pages()).toHaveLength(2);
    await leaving.close();
    await until("the context is gone", async () => (await pages()).length === 1);
    expect(await pages()).toEqual([last]);
  });
});
