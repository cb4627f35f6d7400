import puppeteer from "puppeteer-core";
import { Builder } from "selenium-webdriver";
import getBrowsingContext from "selenium-webdriver/bidi/browsingContext.js";
import getLogInspector from "selenium-webdriver/bidi/logInspector.js";
import getScriptManager from "selenium-webdriver/bidi/scriptManager.js";
import { remote } from "webdriverio";

/** What a client read of the page: its title, and the event that its console caused. */
interface Visit {
  readonly title: unknown;
  readonly console: string;
}

/** Clients as they are published. Each is given a session's BiDi URL with its token, and leaves. */
export const bidiClients: readonly {
  readonly name: string;
  readonly visit: (url: string, page: string) => Promise<Visit>;
}[] = [
  { name: "Puppeteer", visit: visitByPuppeteer },
  { name: "Selenium, with the token as the password of its server's URL,", visit: visitBySelenium },
  { name: "WebdriverIO", visit: visitByWebdriverIO },
];

async function visitByPuppeteer(url: string, page: string): Promise<Visit> {
  const client = await puppeteer.connect({ browserWSEndpoint: url, protocol: "webDriverBiDi" });
  const opened = await client.newPage();
  const said = new Promise<string>((resolve) => opened.on("console", (message) => resolve(message.text())));
  await opened.goto(page);
  const title = await opened.evaluate("console.log(`said`), document.title");
  const found = { title, console: await said };
  await opened.close();
  await client.disconnect();
  return found;
}

async function visitBySelenium(bidi: string, page: string): Promise<Visit> {
  const url = new URL(bidi);
  const server = `http://remuda:${url.searchParams.get("token")}@${url.host}${url.pathname.replace("/session", "")}`;
  const driver = await new Builder().usingServer(server).forBrowser("chrome").build();
  const logs = await getLogInspector(driver);
  const said = new Promise<string>(
    (resolve) => void logs.onConsoleEntry(({ text }: { text: string }) => resolve(text)),
  );
  const context = await getBrowsingContext(driver, { type: "tab" });
  await context.navigate(page, "complete");
  const scripts = await getScriptManager(
    String(context.id),
    // The package of types names another class than the one that is taken.
    driver as unknown as Parameters<typeof getScriptManager>[1],
  );
  const evaluated = (await scripts.evaluateFunctionInBrowsingContext(
    String(context.id),
    "(console.log(`said`), document.title)",
    true,
  )) as { readonly result?: { readonly value?: unknown } };
  const found = { title: evaluated.result?.value, console: await said };
  await context.close();
  await driver.quit();
  return found;
}

async function visitByWebdriverIO(bidi: string, page: string): Promise<Visit> {
  const url = new URL(bidi);
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
  await client.url(page);
  const title = await client.execute("console.log(`said`); return document.title");
  const found = { title, console: await said };
  await client.deleteSession();
  return found;
}
