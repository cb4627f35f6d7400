import puppeteer from "puppeteer-core";
import { Builder } from "selenium-webdriver";
import getLogInspector from "selenium-webdriver/bidi/logInspector.js";
import getBrowsingContext from "selenium-webdriver/bidi/browsingContext.js";
import getScriptManager from "selenium-webdriver/bidi/scriptManager.js";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { remote } from "webdriverio";
import { kinds } from "../../support/browser/chromium-kinds.js";
import { openSite, type Site } from "../../support/browser/chromium-site.js";
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

  test("Puppeteer opens a page by BiDi, navigates, evaluates and hears its console", async () => {
    const client = await puppeteer.connect({ browserWSEndpoint: browser.bidi(), protocol: "webDriverBiDi" });
    expect(await client.version()).toMatch(/^chrome\/\d+\.\d+/);
    const opened = await client.newPage();
    const said = new Promise<string>((resolve) => opened.on("console", (message) => resolve(message.text())));
    await opened.goto(site.origin);
    expect(await opened.evaluate("console.log(`said`), document.title")).toBe("site");
    expect(await said).toBe("said");
    await opened.close();
    await client.disconnect();
  });

  test("Selenium learns the socket's address by HTTP, with the token as the password of its server's URL", async () => {
    const url = new URL(browser.bidi());
    const server = `http://remuda:${url.searchParams.get("token")}@${url.host}${url.pathname.replace("/session", "")}`;
    const driver = await new Builder().usingServer(server).forBrowser("chrome").build();
    const logs = await getLogInspector(driver);
    const said = new Promise<string>(
      (resolve) => void logs.onConsoleEntry(({ text }: { text: string }) => resolve(text)),
    );
    const context = await getBrowsingContext(driver, { type: "tab" });
    await context.navigate(site.origin, "complete");
    const scripts = await getScriptManager(
      String(context.id),
      // The package of types names another class than the one that is taken.
      driver as unknown as Parameters<typeof getScriptManager>[1],
    );
    const evaluated = await scripts.evaluateFunctionInBrowsingContext(
      String(context.id),
      "(console.log(`said`), document.title)",
      true,
    );
    expect(evaluated).toMatchObject({ result: { value: "site" } });
    expect(await said).toBe("said");
    await context.close();
    await driver.quit();
  });

  test("WebdriverIO opens a page, navigates, evaluates and hears its console", async () => {
    const url = new URL(browser.bidi());
    const client = await remote({
      hostname: url.hostname,
      port: Number(url.port),
      path: url.pathname.replace("/session", ""),
      queryParams: { token: url.searchParams.get("token") ?? "" },
      capabilities: { browserName: "chrome", webSocketUrl: true },
      logLevel: "error",
    });
    const said = new Promise<string>((resolve) =>
      client.on("log.entryAdded", ({ text }) => resolve(text ?? "")),
    );
    await client.sessionSubscribe({ events: ["log.entryAdded"] });
    await client.url(site.origin);
    expect(await client.execute("console.log(`said`); return document.title")).toBe("site");
    expect(await said).toBe("said");
    await client.deleteSession();
  });
});
