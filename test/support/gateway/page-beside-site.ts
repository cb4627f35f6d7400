import type { LaunchSpec } from "../../../src/browser/chromium.js";
import { until } from "../browser/chromium-until.js";
import { type FillSite, openFillSite } from "../browser/fill/fill-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "./gateway-browser.js";
import { connectRaw, type RawCdp } from "./raw-cdp.js";

export interface Target {
  readonly targetId: string;
  readonly type: string;
  readonly url: string;
}

export interface PageBesideSite {
  readonly browser: GatewayBrowser;
  readonly site: FillSite;
  readonly client: RawCdp;
  /** The target of the browser's first page. */
  readonly page: string;
  close(): Promise<void>;
}

/** A browser behind a gateway, a client of it, and a site that serves pages to be filled. */
export async function openPageBesideSite(spec: Partial<LaunchSpec>): Promise<PageBesideSite> {
  const [browser, site] = await Promise.all([openGatewayBrowser(spec), openFillSite()]);
  const client = await connectRaw(browser.url());
  const page = (await targetsOf(client)).find(({ type }) => type === "page")?.targetId ?? "";
  return {
    browser,
    site,
    client,
    page,
    async close() {
      await browser.close();
      await site.close();
    },
  };
}

export const targetsOf = async (client: RawCdp): Promise<readonly Target[]> =>
  (await client.send("Target.getTargets")).result?.["targetInfos"] as Target[];

/** Has a page show an address, and waits until it does. */
export async function loadPage(client: RawCdp, session: string, url: string): Promise<void> {
  await client.send("Page.navigate", { url }, session);
  await until("it is loaded", async () => {
    const at = await client.evaluate("document.readyState + location.href", session);
    return at === `complete${url}`;
  });
}
