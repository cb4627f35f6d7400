import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { leftDomains } from "../../src/browser/cdp/late-detaches.js";
import { kinds } from "../support/browser/chromium-kinds.js";
import { until } from "../support/browser/chromium-until.js";
import { type FillSite, openFillSite } from "../support/browser/fill/fill-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";
import { findProtocol } from "../support/gateway/installed-protocol.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";
import { credentialOf, openRelyingParty, type RelyingParty } from "../support/vault/relying-party.js";

describe.each(kinds)("%s, while a passkey is armed", (_, spec) => {
  let browser: GatewayBrowser;
  let site: FillSite;
  let party: RelyingParty;
  /** A client that stays, and its session on the page. */
  let staying: RawCdp;
  let at: string;
  let disarm: () => Promise<void>;
  beforeAll(async () => {
    [browser, site] = await Promise.all([openGatewayBrowser(spec), openFillSite()]);
    site.serve({ body: "sign in", others: { "/other": "sign in" } });
  });
  afterAll(async () => {
    await browser.close();
    await site.close();
  });
  beforeEach(async () => {
    // A machine that is busy answers late, and is no fault.
    party = openRelyingParty(site.other, 20_000);
    staying = await connectRaw(browser.url());
    at = await staying.attach();
    await open(`${site.other}/`);
    disarm = await browser.chromium.armPasskey(credentialOf(party));
  });
  afterEach(async () => {
    await disarm();
    await staying.close();
  });

  const ask = (expression: string, session = at) =>
    staying.send(
      "Runtime.evaluate",
      { expression, returnByValue: true, awaitPromise: true, userGesture: true },
      session,
    );
  async function evaluate(expression: string, session = at): Promise<unknown> {
    return ((await ask(expression, session)).result?.["result"] as { value?: unknown } | undefined)?.value;
  }
  async function open(url: string): Promise<void> {
    await staying.send("Page.navigate", { url }, at);
    await until(
      "it is there",
      async () => (await evaluate("document.readyState + location")) === `complete${url}`,
    );
  }
  async function signIn(session = at): Promise<boolean | string> {
    const { script, verify } = await party.challenge();
    const answer = String(await evaluate(script, session));
    return answer.startsWith("{") ? await verify(answer) : answer;
  }
  const pageTarget = async (): Promise<string> =>
    (await targets()).find(({ url }) => url === `${site.other}/`)?.targetId ?? "";
  async function targets(): Promise<readonly { targetId: string; url: string; attached: boolean }[]> {
    return (await staying.send("Target.getTargets")).result?.["targetInfos"] as never;
  }

  test("a page that asks for it without a pause is let in each time, whatever sessions clients leave", async () => {
    const { script } = await party.challenge();
    await evaluate(`window.answers = []; (async () => {
      while (!window.isEnough) answers.push(await ${script});
    })(), 0`);
    const count = async (): Promise<number> => Number(await evaluate("answers.length"));
    const target = await pageTarget();
    for (let round = 0; round < 6; round += 1) {
      const leaving = await connectRaw(browser.url());
      const sessions = [await leaving.attach(target), await leaving.attach(target)];
      const left = await leaving.send("Target.detachFromTarget", { sessionId: sessions[0] });
      expect(left.result).toEqual({});
      expect((await leaving.send("Runtime.evaluate", { expression: "0" }, sessions[0])).error?.message).toBe(
        "Session with given id not found.",
      );
      const before = await count();
      await leaving.close();
      await until("it has been let in again", async () => (await count()) > before + 2);
    }
    const answers = (await evaluate("isEnough = true, answers")) as string[];
    expect(answers.filter((answer) => !answer.startsWith("{"))).toEqual([]);
    expect(answers.length).toBeGreaterThan(12);
  });

  test("nothing waits for a session that was left: no request, no dialog, no breakpoint, no tab", async () => {
    const target = await pageTarget();
    const leaving = await connectRaw(browser.url());
    await leaving.send("Target.setDiscoverTargets", { discover: true });
    await leaving.send("Target.setAutoAttach", {
      autoAttach: true,
      waitForDebuggerOnStart: true,
      flatten: true,
    });
    for (const session of [await leaving.attach(target), await leaving.attach(target)]) {
      await leaving.send("Page.enable", {}, session);
      await leaving.send("Debugger.enable", {}, session);
      await leaving.send("Fetch.enable", {}, session);
    }
    const made = await leaving.send("Target.createBrowserContext", { disposeOnDetach: true });
    const { browserContextId } = made.result ?? {};
    await leaving.send("Target.createTarget", { url: `${site.here}/other`, browserContextId });
    await until("its own page is there", async () =>
      (await targets()).some(({ url }) => url.startsWith(site.here)),
    );
    await leaving.close();

    await open(`${site.other}/other`);
    // Chromium asks its user where there is nobody else, headless-shell nobody.
    if (spec.engine === "headless-shell") await evaluate("alert(1)");
    await evaluate("debugger");
    expect(await evaluate("fetch('/other').then((answer) => answer.status)")).toBe(200);
    await until("its context is gone", async () =>
      (await targets()).every(({ url }) => !url.startsWith(site.here)),
    );
    const { result } = await staying.send("Target.createTarget", { url: `${site.other}/` });
    const tab = await staying.attach(String(result?.["targetId"]));
    await until("the tab is there", async () => (await evaluate("document.readyState", tab)) === "complete");
    expect(await signIn(tab)).toBe(true);
    expect(await signIn()).toBe(true);
    await staying.send("Target.closeTarget", { targetId: result?.["targetId"] });
  });

  test("a session that was left ends when the passkey is taken away", async () => {
    const target = await pageTarget();
    const isAttached = async (): Promise<boolean | undefined> =>
      (await targets()).find(({ targetId }) => targetId === target)?.attached;
    const leaving = await connectRaw(browser.url());
    await leaving.attach(target);
    await leaving.close();
    await staying.send("Target.detachFromTarget", { sessionId: at });
    at = await staying.attach(target);
    expect(await signIn()).toBe(true);
    await staying.send("Target.detachFromTarget", { sessionId: at });
    expect(await isAttached()).toBe(true);
    await disarm();
    await until("nobody is attached", async () => (await isAttached()) === false);
  });
});

test.each(["chromium", "headless-shell"] as const)(
  "what the protocol of %s can disable is, except WebAuthn",
  async (engine) => {
    const domains = await findProtocol(engine);
    const disabled = domains
      .filter(({ commands = [] }) => commands.some(({ name }) => name === "disable"))
      .map(({ domain }) => domain);
    expect(disabled.filter((domain) => !leftDomains.includes(domain))).toEqual(["WebAuthn"]);
  },
);
