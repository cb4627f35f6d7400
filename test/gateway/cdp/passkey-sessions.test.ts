import { describe, expect, test } from "vitest";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { armedBrowser } from "../../support/gateway/armed-browser.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { credentialOf } from "../../support/vault/relying-party.js";

describe.each(engines)("%s, while a passkey is armed", (_, spec) => {
  const armed = armedBrowser(spec);
  const connect = (rest?: string): Promise<RawCdp> => connectRaw(armed().browser.url(rest));
  const sessionIn = (reply: { readonly result?: Record<string, unknown> }): string =>
    String(reply.result?.["sessionId"]);

  test("a page is let in each time while clients leave sessions on the browser, on its tab, and a connection of its own", async () => {
    const { page, keepAsking, letInAgain } = armed();
    const stop = await keepAsking();
    const client = await connect();
    const nested = sessionIn(await client.send("Target.attachToBrowserTarget"));
    await client.send("Target.attachToTarget", { targetId: page, flatten: true }, nested);
    const tabsToo = { filter: [{ type: "tab" }] };
    const infos = (await client.send("Target.getTargets", tabsToo)).result?.["targetInfos"];
    const [tab] = infos as readonly { readonly targetId: string }[];
    const onTab = sessionIn(
      await client.send("Target.attachToTarget", { targetId: tab?.targetId, flatten: true }),
    );
    const within = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true };
    await client.send("Target.setAutoAttach", within, onTab);
    for (const sessionId of [nested, onTab]) {
      expect((await client.send("Target.detachFromTarget", { sessionId })).result).toEqual({});
      await letInAgain();
    }
    const direct = await connect(`/devtools/page/${page}`);
    expect((await direct.send("Runtime.evaluate", { expression: "0" })).result).toBeDefined();
    await direct.close();
    await letInAgain();
    await client.close();
    await letInAgain();
    expect((await stop()).filter((answer) => !answer.startsWith("{"))).toEqual([]);
  });

  test("nothing waits for a session that was left and is not flat", async () => {
    const bed = armed();
    await bed.disarm();
    const leaving = await connect();
    const sessionId = sessionIn(await leaving.send("Target.attachToTarget", { targetId: bed.page }));
    for (const [id, method] of [
      [1, "Debugger.enable"],
      [2, "Fetch.enable"],
    ]) {
      const message = JSON.stringify({ id, method, params: {} });
      expect((await leaving.send("Target.sendMessageToTarget", { sessionId, message })).result).toEqual({});
    }
    bed.disarm = await bed.browser.chromium.armPasskey(credentialOf(bed.party));
    await leaving.close();
    expect(await bed.evaluate("fetch('/other').then((answer) => answer.status)")).toBe(200);
    await bed.evaluate("debugger");
    expect(await bed.signIn()).toBe(true);
  });

  test("a page that is gone back to, and one that has crashed and is loaded anew, have it", async () => {
    const { site, staying, at, open, evaluate, signIn } = armed();
    expect(await signIn()).toBe(true);
    await open(`${site.here}/`);
    await evaluate("history.back()");
    await until("back", async () => (await evaluate("location.href")) === `${site.other}/`);
    expect(await signIn()).toBe(true);
    const crashed = new Promise<void>((resolve) => {
      staying.socket.on("message", (text) => {
        if (String(text).includes("Inspector.targetCrashed")) resolve();
      });
    });
    await staying.send("Inspector.enable", {}, at);
    staying.socket.send(JSON.stringify({ id: 9001, method: "Page.crash", sessionId: at }));
    await crashed;
    await open(`${site.other}/other`);
    expect(await signIn()).toBe(true);
  });
});
