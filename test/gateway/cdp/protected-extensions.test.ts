import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nextRoom, writeInto } from "../../support/archive/extension-files.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { type Target, targetsOf } from "../../support/gateway/page-beside-site.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";

const withExtensions = engines.filter(([, { engine }]) => engine === "chromium");

describe.each(withExtensions)("a page of %s that is protected", (_, spec) => {
  let browser: GatewayBrowser;
  let client: RawCdp;
  beforeAll(async () => {
    browser = await openGatewayBrowser(spec);
    const reader = { permissions: ["scripting", "tabs"], host_permissions: ["<all_urls>"] };
    const extension = await writeInto(nextRoom(browser.chromium), "reader", reader);
    expect(await browser.chromium.load([extension], 60_000)).toEqual({ kind: "loaded" });
    client = await connectRaw(browser.url());
  });
  afterAll(async () => {
    await browser.close();
  });

  const targets = (): Promise<readonly Target[]> => targetsOf(client);

  /** The value in its time: a worker that is just being started anew may never answer. */
  const evaluate = (expression: string, session: string): Promise<unknown> =>
    Promise.race([client.evaluate(expression, session), new Promise((resolve) => setTimeout(resolve, 3000))]);

  test("is not read by an extension's worker: a client's scripts there are refused meanwhile", async () => {
    const page = (await targets()).find(({ type }) => type === "page")?.targetId ?? "";
    const worker = await until("the worker answers", async () => {
      const all = await targets();
      const found = all.find(({ type, url }) => type === "service_worker" && url.endsWith("/worker.js"));
      if (!found) return undefined;
      const session = await client.attach(found.targetId);
      return (await evaluate("typeof chrome.scripting", session)) === "object" ? session : undefined;
    });
    const { filled } = browser.bed.local(browser.chromium.id).bridge;
    filled.add(page, [page], {});
    const { result } = await client.send("Runtime.evaluate", { expression: "1" }, worker);
    expect(JSON.stringify(result)).toContain("an extension's scripts");
    const { error } = await client.send("Runtime.getProperties", { objectId: "1" }, worker);
    expect(error?.message).toMatch(/an extension's scripts .*protect_filled/);
    filled.remove(page);
  });
});
