import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { type FillSite, fillBy, fillOf } from "../../support/browser/fill/fill-bed.js";
import type { GatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { loadPage, openPageBesideSite, type PageBesideSite } from "../../support/gateway/page-beside-site.js";
import type { RawCdp } from "../../support/gateway/raw-cdp.js";

/** Chromium keeps the text of such a field with the history. It goes on when the site says so. */
const body = `<form action="/next"><input id="user" name="user"></form>
  <script>self.go = (how) => setInterval(async () => {
    if (!(await fetch("/go")).ok) return;
    if (how === "reload") location.reload(); else history.go(0);
  }, 100)</script>`;
const others = { "/next": "next" };

// What a document keeps of its fields does not hang on its window.
describe.each(engines)("a page of %s that is protected", (_, spec) => {
  let bed: PageBesideSite;
  let browser: GatewayBrowser;
  let site: FillSite;
  let client: RawCdp;
  let page: string;
  let session: string;
  beforeAll(async () => {
    bed = await openPageBesideSite(spec);
    ({ browser, site, client, page } = bed);
    site.serve({ body, others });
    session = await client.attach(page);
    await client.send("Page.enable", {}, session);
  });
  afterAll(() => bed.close());
  beforeEach(async () => {
    site.serve({ body, others });
    browser.bed.local(browser.chromium.id).bridge.filled.remove(page);
    for (const url of ["about:blank", `${site.here}/next`, `${site.here}/`])
      await loadPage(client, session, url);
  });

  const goes = async (): Promise<void> => site.serve({ body, others: { ...others, "/go": "go" } });
  const ways: readonly (readonly [string, string, () => Promise<unknown>])[] = [
    ["is loaded anew by a client", "0", () => client.send("Page.reload", {}, session)],
    [
      "is loaded anew by a client, past the cache",
      "0",
      () => client.send("Page.reload", { ignoreCache: true }, session),
    ],
    [
      "is opened again by its address",
      "0",
      () => client.send("Page.navigate", { url: `${site.here}/` }, session),
    ],
    ["loads itself anew", "go('reload')", goes],
    ["goes to itself in its history", "go('history')", goes],
  ];
  test.each(ways)("shows nobody what stood in its fields when it %s", async (_how, planted, go) => {
    const { filled, holds } = browser.bed.local(browser.chromium.id).bridge;
    let isOver = false;
    await browser.chromium.watchNavigation({
      page,
      hasClients: () => true,
      hold: () => holds.hold([page]),
      over() {
        isOver = true;
        filled.remove(page);
      },
    });
    const before = await client.evaluate(`${planted}, performance.timeOrigin`, session);
    filled.add(page, [page], {});
    const fields = [["#user", "secret-1"]] as const;
    const outcome = await fillBy(browser.chromium.pipe, fillOf({ fields }));
    expect(outcome).toMatchObject({ status: "completed" });
    await go();
    await until("it is read again", async () => {
      const { result } = await client.send(
        "Runtime.evaluate",
        { expression: "JSON.stringify([performance.timeOrigin, self.user?.value])", returnByValue: true },
        session,
      );
      const read = JSON.stringify(result);
      expect(read).not.toContain("secret-1");
      return isOver && !read.includes(String(before)) && !read.includes("protect_filled");
    });
  });
});
