import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { openBrowserBesideSite } from "../../support/gateway/gateway-browser.js";
import { connectBidi, type RawBidi } from "../../support/gateway/raw-bidi.js";
import { connectRaw, type RawCdp, type RawReply } from "../../support/gateway/raw-cdp.js";

/** Leaves behind what a client of BiDi can leave. */
async function soil(client: RawBidi, context: string, site: string): Promise<void> {
  const must = async (method: string, params: object): Promise<Record<string, unknown>> => {
    const { type, result = {}, message } = await client.send(method, params);
    expect([method, type, message]).toEqual([method, "success", undefined]);
    return result;
  };
  await must("session.subscribe", { events: ["network", "log.entryAdded", "browsingContext"] });
  await must("script.addPreloadScript", { functionDeclaration: "() => { globalThis.left = 1 }" });
  await must("browser.createUserContext", {});
  const { userContext } = await must("browser.createUserContext", {});
  await must("browsingContext.create", { type: "tab", userContext });
  await must("storage.setCookie", {
    cookie: { name: "left", value: { type: "string", value: "1" }, domain: "127.0.0.1" },
  });
  await must("browser.setDownloadBehavior", { downloadBehavior: { type: "denied" } });
  await must("permissions.setPermission", {
    descriptor: { name: "geolocation" },
    state: "granted",
    origin: site,
  });
  await must("emulation.setTimezoneOverride", { timezone: "Asia/Tokyo", contexts: [context] });
  await must("emulation.setScriptingEnabled", { enabled: false, contexts: [context] });
  await must("network.setExtraHeaders", {
    headers: [{ name: "x-left", value: { type: "string", value: "1" } }],
  });
  await must("network.addIntercept", { phases: ["beforeRequestSent"] });
}

test.each(engines)("%s: of a client of BiDi nothing reaches the next holder", async (_, spec) => {
  const { browser, site } = await openBrowserBesideSite(spec);
  const { chromium, bed } = browser;
  const first = await connectBidi(browser.bidi());
  await soil(first, await first.begin(), site.origin);
  await bed.local(chromium.id).activity.cutLease(bed.lease(chromium.id), "released");
  expect((await first.closed).code).toBe(4410);
  expect(await chromium.reset(30_000)).toEqual({ differences: [] });
  bed.newLease(chromium.id);
  const next = await connectBidi(browser.bidi());
  const heard: unknown[] = [];
  next.socket.on("message", (data: Buffer) => {
    const message = JSON.parse(data.toString()) as { type: string };
    if (message.type === "event") heard.push(message);
  });
  const context = await next.begin();
  expect((await next.open(context, site.origin)).type).toBe("success");
  const state = `JSON.stringify([typeof left, document.cookie, new Date().getTimezoneOffset() === -540])`;
  expect(await next.evaluate(context, state)).toBe('["undefined","",false]');
  expect((await next.send("browser.getUserContexts")).result).toEqual({
    userContexts: [{ userContext: "default" }],
  });
  expect((await next.send("storage.getCookies")).result).toMatchObject({ cookies: [] });
  expect(heard).toEqual([]);
  await next.close();
});

test.each(engines)(
  "%s: downloads land in the session's own once whoever chose otherwise is gone",
  async (_, spec) => {
    const { browser, site } = await openBrowserBesideSite(spec);
    const { downloads } = browser.chromium.directories;
    const downloadFile = async (): Promise<void> => {
      const cdp = await connectRaw(browser.url());
      const page = await cdp.attach();
      await cdp.send("Page.navigate", { url: `${site.origin}/file` }, page);
      await until("the download is there", async () => (await readdir(downloads)).includes("kept.txt"));
      await rm(join(downloads, "kept.txt"));
      await cdp.close();
    };
    for (const downloadBehavior of [
      { type: "denied" },
      { type: "allowed", destinationFolder: "/me" },
      null,
    ]) {
      const client = await connectBidi(browser.bidi());
      await client.begin();
      expect((await client.send("browser.setDownloadBehavior", { downloadBehavior })).type).toBe("success");
      await client.close();
      await until("it is gone", () => browser.bed.counts.opened === browser.bed.counts.closed);
      await downloadFile();
    }
    for (const deny of [denyDownloads, denyWithinMessages]) {
      const client = await connectRaw(browser.url());
      expect(await deny(client)).toHaveProperty("result");
      await client.close();
      await until("it is gone", () => browser.bed.counts.opened === browser.bed.counts.closed);
      await downloadFile();
    }
  },
);

const denial = { method: "Browser.setDownloadBehavior", params: { behavior: "deny" } };
const denyDownloads = (client: RawCdp): Promise<RawReply> => client.send(denial.method, denial.params);

/** Goes by a session that is not flat, so that the command comes inside others. */
async function denyWithinMessages(client: RawCdp): Promise<RawReply> {
  const { result } = await client.send("Target.getTargets");
  const targets = (result?.targetInfos ?? []) as { targetId: string; type: string }[];
  const targetId = targets.find(({ type }) => type === "page")?.targetId;
  const attached = await client.send("Target.attachToTarget", { targetId, flatten: false });
  const message = JSON.stringify({ id: 1, ...denial });
  return await client.send("Target.sendMessageToTarget", {
    sessionId: attached.result?.["sessionId"],
    message,
  });
}
