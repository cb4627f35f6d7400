import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { kinds } from "../../support/browser/chromium-kinds.js";
import { openSite, type Site } from "../../support/browser/chromium-site.js";
import { bidiClients } from "../../support/gateway/bidi-clients.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";

describe.each(kinds)("%s", (_name, spec) => {
  let browser: GatewayBrowser;
  let site: Site;

  beforeAll(async () => {
    [browser, site] = await Promise.all([openGatewayBrowser(spec), openSite()]);
  });
  afterAll(async () => {
    await browser.close();
    await site.close();
  });
  beforeEach(() => browser.bed.newLease(browser.chromium.id));

  test.each(bidiClients)("$name navigates, evaluates and hears the console by BiDi", async ({ visit }) => {
    expect(await visit(browser.bidi(), site.origin)).toEqual({ title: "site", console: "said" });
  });
});
