import { describe, expect, test } from "vitest";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { armedBrowser } from "../../support/gateway/armed-browser.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { credentialOf } from "../../support/vault/relying-party.js";

const worker = "self.onfetch = () => {}";

describe.each(engines)("%s, while a passkey is armed", (_, spec) => {
  const armed = armedBrowser(spec);

  test("no client hears of its key, also one that had asked for the events before", async () => {
    const bed = armed();
    await bed.disarm();
    const listening = await connectRaw(bed.browser.url());
    const heard: string[] = [];
    listening.socket.on("message", (data: Buffer) => void heard.push(data.toString()));
    const { sessionId } = (
      await listening.send("Target.attachToTarget", { targetId: bed.page, flatten: true })
    ).result as { sessionId: string };
    expect((await listening.send("WebAuthn.enable", {}, sessionId)).error).toBeUndefined();
    const credential = credentialOf(bed.party);
    bed.disarm = await bed.browser.chromium.armPasskey(credential);
    for (let times = 0; times < 3; times += 1) expect(await bed.signIn()).toBe(true);
    await listening.send("Browser.getVersion");
    const key = credential.privateKey.slice(0, 40);
    expect(heard.filter((text) => text.includes(key) || text.includes("WebAuthn.credential"))).toEqual([]);
    await listening.close();
  });

  test("no session says a word of WebAuthn: neither its page's, a frame's, a worker's, nor another context's", async () => {
    const { browser, site, staying, evaluate, page } = armed();
    site.serve({
      body: `<iframe src="{here}/frame"></iframe>`,
      others: { "/frame": "frame", "/other": "sign in", "/worker.js": worker },
    });
    await armed().open(`${site.other}/`);
    await evaluate(
      "navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready).then(() => 1)",
    );
    const created = await staying.send("Target.createBrowserContext");
    const { browserContextId } = created.result as { browserContextId: string };
    const url = `${site.other}/other`;
    await staying.send("Target.createTarget", { url, browserContextId });
    const named = [/\/worker\.js$/, /\/other$/, ...(spec.engine === "chromium" ? [/\/frame$/] : [])];
    const found = await until("all targets", async () => {
      const all = await armed().targets();
      const targets = named.flatMap((name) => all.find((target) => name.test(target.url)) ?? []);
      return targets.length === named.length ? targets.map(({ targetId }) => targetId) : undefined;
    });
    const tabs = (await staying.send("Target.getTargets", { filter: [{ type: "tab" }] })).result;
    const [tab] = (tabs?.["targetInfos"] ?? []) as readonly { readonly targetId: string }[];
    browser.bed.local(browser.chromium.id).bridge.filled.isArmed = true;
    for (const target of [page, tab?.targetId, ...found]) {
      const at = await staying.attach(target);
      for (const method of [
        "WebAuthn.enable",
        "WebAuthn.getCredentials",
        "WebAuthn.disable",
        "WebAuthn.future",
      ])
        expect((await staying.send(method, { authenticatorId: "1" }, at)).error?.message).toContain(
          "is armed",
        );
    }
    browser.bed.local(browser.chromium.id).bridge.filled.isArmed = false;
    const other = await staying.attach(found[1]);
    await until(
      "it is there",
      async () => (await evaluate("document.readyState + location", other)) === `complete${url}`,
    );
    expect(await armed().signIn(other)).toBe(true);
    await staying.send("Target.disposeBrowserContext", { browserContextId });
    site.serve({ body: "sign in", others: { "/other": "sign in" } });
  });
});
