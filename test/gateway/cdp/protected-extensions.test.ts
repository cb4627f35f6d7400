import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nextRoom, writeInto } from "../../support/archive/extension-files.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { CdpFailure, until } from "../../support/browser/chromium-until.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { type Target, targetsOf } from "../../support/gateway/page-beside-site.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";

const withExtensions = engines.filter(([, { engine }]) => engine === "chromium");

describe.each(withExtensions)("a page of %s that is protected", (_, spec) => {
  let browser: GatewayBrowser;
  let client: RawCdp;
  beforeAll(async () => {
    browser = await openGatewayBrowser(spec);
    client = await connectRaw(browser.url());
  });
  afterAll(async () => {
    await browser.close();
  });

  const targets = (): Promise<readonly Target[]> => targetsOf(client);

  async function load(name: string): Promise<void> {
    const reader = { permissions: ["scripting", "tabs"], host_permissions: ["<all_urls>"] };
    const extension = await writeInto(nextRoom(browser.chromium), name, reader);
    // Chromium starts it for this where it has ended.
    await writeFile(join(extension.path, "worker.js"), "chrome.tabs.onUpdated.addListener(() => {});");
    expect(await browser.chromium.load([extension], 60_000)).toEqual({ kind: "loaded" });
  }

  /**
   * Chromium 156 now and then has no worker of an extension that it has loaded, where the machine
   * is busy; it is then given another extension.
   */
  async function startWorker(page: string, tries = 3): Promise<string> {
    await load(`reader-${tries}`);
    const starting = until("the worker answers", () => attachWorker(page), 20_000);
    return tries === 1 ? await starting : await starting.catch(() => startWorker(page, tries - 1));
  }

  /** A session on an extension's worker; throws where none is running. */
  async function attachWorker(page: string): Promise<string> {
    const all = await targets();
    const found = all.find(({ type, url }) => type === "service_worker" && url.endsWith("/worker.js"));
    if (!found) {
      await client.send("Page.reload", {}, page);
      throw new CdpFailure(`there is no worker among ${JSON.stringify(all.map(({ url }) => url))}`);
    }
    const session = await client.attach(found.targetId);
    // One that is just being started anew may never answer.
    const answer = client.evaluate("typeof chrome.scripting", session);
    const said = await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 3000, "nothing"))]);
    if (said === "object") return session;
    await client.send("Target.detachFromTarget", { sessionId: session });
    throw new CdpFailure(`the worker ${found.targetId} says ${String(said)}`);
  }

  test("is not read by an extension's worker: a client's scripts there are refused meanwhile", async () => {
    const page = (await targets()).find(({ type }) => type === "page")?.targetId ?? "";
    const pageSession = await client.attach(page);
    const worker = await startWorker(pageSession);
    await client.send("Target.detachFromTarget", { sessionId: pageSession });
    const { filled } = browser.bed.local(browser.chromium.id).bridge;
    filled.add(page, [page], {});
    const { result } = await client.send("Runtime.evaluate", { expression: "1" }, worker);
    expect(JSON.stringify(result)).toContain("an extension's scripts");
    const { error } = await client.send("Runtime.getProperties", { objectId: "1" }, worker);
    expect(error?.message).toMatch(/an extension's scripts .*protect_filled/);
    filled.remove(page);
  });
});
