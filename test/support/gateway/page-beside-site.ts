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

/** The target whose address ends so, once there is one; it may still be on its way to it. */
export const targetAt = (client: RawCdp, path: string): Promise<Target> =>
  until(`a target at ${path}`, async () => (await targetsOf(client)).find(({ url }) => url.endsWith(path)));

/** A session on the page or frame at a path that has loaded there. */
export async function attachLoaded(client: RawCdp, path: string): Promise<string> {
  const at = await client.attach((await targetAt(client, path)).targetId);
  await until(`${path} is loaded`, async () => {
    const where = await client.evaluate("document.readyState + location.pathname", at);
    return where === `complete${path}`;
  });
  return at;
}

/** Closes all pages but one, and waits until they have gone: until then they are found by their address. */
export async function closeOthers(client: RawCdp, page: string): Promise<void> {
  await until("the other pages have gone", async () => {
    const others = (await targetsOf(client)).filter(
      ({ targetId, type }) => type === "page" && targetId !== page,
    );
    for (const { targetId } of others) await client.send("Target.closeTarget", { targetId });
    return others.length === 0;
  });
}

/** Has a page show an address, and waits until it does. */
export async function loadPage(client: RawCdp, session: string, url: string): Promise<void> {
  await client.send("Page.navigate", { url }, session);
  await until("it is loaded", async () => {
    const at = await client.evaluate("document.readyState + location.href", session);
    return at === `complete${url}`;
  });
}
