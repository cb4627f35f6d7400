import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { kinds } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { type FillSite, openFillSite } from "../../support/browser/fill/fill-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";

interface Target {
  readonly targetId: string;
  readonly type: string;
  readonly url: string;
}

const eagerness = "immediate";
const rules = {
  prerender: [{ source: "list", urls: ["/next"], eagerness }],
  prefetch: [{ source: "list", urls: ["/fetched"], eagerness }],
};
/** Has its field filled once, and goes on as soon as the site says so. */
const body = `<form><input id="user"></form>
  <script type="speculationrules">${JSON.stringify(rules)}</script>
  <script>
    if (!sessionStorage.filled) { sessionStorage.filled = 1; user.value = "secret"; }
    setInterval(async () => { if ((await fetch("/go")).ok) location.href = "/next"; }, 100);
  </script>`;
const others = { "/next": "next", "/fetched": "fetched" };
const tabsOnly = [{ type: "tab" }, { exclude: true }];
const attaching = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true };

/** Nobody else is there, who would keep Chromium from it. */
async function openAlone(client: RawCdp, url: string): Promise<void> {
  await client.send("Target.createTarget", { url });
}

/** As Puppeteer attaches. */
async function openByTab(client: RawCdp, url: string): Promise<void> {
  const attached = async (to: string | undefined): Promise<string> => {
    const { params } = await client.message(({ method, sessionId, params: found }) => {
      const { type } = (found?.["targetInfo"] ?? {}) as Partial<Target>;
      return method === "Target.attachedToTarget" && sessionId === to && type === (to ? "page" : "tab");
    });
    return String(params?.["sessionId"]);
  };
  await client.send("Target.setAutoAttach", { ...attaching, filter: tabsOnly });
  const tab = await attached(undefined);
  await client.send("Target.setAutoAttach", attaching, tab);
  await client.send("Page.navigate", { url }, await attached(tab));
}

describe.each(kinds)("a page of %s that asks for another to be prerendered", (_, spec) => {
  let browser: GatewayBrowser;
  let site: FillSite;
  let client: RawCdp;
  beforeAll(async () => {
    [browser, site] = await Promise.all([openGatewayBrowser(spec), openFillSite()]);
  });
  afterEach(() => client.close());
  afterAll(async () => {
    await browser.close();
    await site.close();
  });

  const pageAt = (path: string): Promise<Target> =>
    until(`a page at ${path}`, async () => {
      const { result } = await client.send("Target.getTargets");
      const targets = result?.["targetInfos"] as readonly Target[];
      return targets.find(({ type, url }) => type === "page" && url === `${site.other}${path}`);
    });

  test.each([
    ["a client is attached to its tab", openByTab],
    ["nobody is attached to it", openAlone],
  ] as const)(
    "goes on to one that was not, and what was filled can not be gone back to: %s",
    async (_how, open) => {
      site.requests.length = 0;
      site.serve({ body, others });
      client = await connectRaw(browser.url());
      await open(client, `${site.other}/`);
      const { targetId: page } = await pageAt("/");
      await until("its rules have been read", () => site.requests.includes("/fetched"));

      const { filled, holds } = browser.bed.local(browser.chromium.id).bridge;
      let isOver = false;
      const over = (): void => {
        isOver = true;
        filled.remove(page);
      };
      const hold = (): (() => void) => holds.hold([page]);
      await browser.chromium.watchNavigation({ page, hasClients: () => true, hold, over });
      filled.add(page, [page], {});
      site.serve({ body, others: { ...others, "/go": "go" } });
      const next = await pageAt("/next");
      await until("it is protected no more", () => isOver);
      const at = await client.attach(next.targetId);
      expect(await client.evaluate("performance.getEntriesByType('navigation')[0].activationStart", at)).toBe(
        0,
      );
      const { result } = await client.send("Page.getNavigationHistory", {}, at);
      const entries = result?.["entries"] as readonly { readonly url: string }[];
      expect(entries.map(({ url }) => url)).toEqual([`${site.other}/next`]);
      await client.send("Page.navigate", { url: "about:blank" }, at);
    },
  );
});
