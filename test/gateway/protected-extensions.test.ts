import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nextRoom, writeInto } from "../support/archive/extension-files.js";
import { engines } from "../support/browser/chromium-kinds.js";
import { until } from "../support/browser/chromium-until.js";
import { type FillSite, openFillSite } from "../support/browser/fill/fill-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";

interface Target {
  readonly targetId: string;
  readonly type: string;
  readonly url: string;
}
const withExtensions = engines.filter(([, { engine }]) => engine === "chromium");

describe.each(withExtensions)("a page of %s that is protected", (_, spec) => {
  let browser: GatewayBrowser;
  let site: FillSite;
  let client: RawCdp;
  beforeAll(async () => {
    [browser, site] = await Promise.all([openGatewayBrowser(spec), openFillSite()]);
    site.serve({ body: `<input id="user">`, others: { "/next": `<input id="user" value="shown">` } });
    const reader = { permissions: ["scripting", "tabs"], host_permissions: ["<all_urls>"] };
    const extension = await writeInto(nextRoom(browser.chromium), "reader", reader);
    expect(await browser.chromium.load([extension], 60_000)).toEqual({ kind: "loaded" });
    client = await connectRaw(browser.url());
  });
  afterAll(async () => {
    await browser.close();
    await site.close();
  });

  const targets = async (): Promise<readonly Target[]> =>
    (await client.send("Target.getTargets")).result?.["targetInfos"] as Target[];

  test("is not read by an extension's worker, to which a client speaks; before and after it is", async () => {
    const page = (await targets()).find(({ type }) => type === "page")?.targetId ?? "";
    const session = await client.attach(page);
    const worker = await until("the worker is there", async () =>
      (await targets()).find(({ type, url }) => type === "service_worker" && url.endsWith("/worker.js")),
    );
    const ofWorker = await client.attach(worker.targetId);
    const open = async (path: string): Promise<void> => {
      await client.send("Page.navigate", { url: `${site.here}${path}` }, session);
      await until("it is loaded", async () => {
        const at = await client.evaluate("document.readyState + location.pathname", session);
        return at === `complete${path}`;
      });
    };
    const late = "new Promise((resolve) => setTimeout(resolve, 3000))";
    const reading = `Promise.race([${late}, (async () => {
      const [tab] = await chrome.tabs.query({ active: true });
      const [{ result }] = await chrome.scripting.executeScript({
        target: { tabId: tab.id }, func: () => document.querySelector("#user").value });
      return result;
    })()])`;
    await open("/");
    await client.evaluate(`user.value = "secret-1"`, session);
    const reads = (value: string): Promise<unknown> =>
      until(`${value} is read`, async () => (await client.evaluate(reading, ofWorker)) === value);
    await reads("secret-1");
    const { filled } = browser.bed.local(browser.chromium.id).bridge;
    filled.add(page, [page], {});
    expect(await client.evaluate(reading, ofWorker)).toBeUndefined();
    filled.remove(page);
    await open("/next");
    await reads("shown");
  });
});
