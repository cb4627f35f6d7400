import { describe, expect, test } from "vitest";
import { leftDomains } from "../../../src/browser/cdp/late-detaches.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { armedBrowser } from "../../support/gateway/armed-browser.js";
import { findProtocol } from "../../support/gateway/installed-protocol.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";

const attachAll = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };

// Who is let in is the bridge's to say, whatever window the page has.
describe.each(engines)("%s, while a passkey is armed", (_, spec) => {
  const armed = armedBrowser(spec);
  const connect = (): Promise<RawCdp> => connectRaw(armed().browser.url());
  /** That the page was let in each time. */
  async function expectAnswers(stop: () => Promise<readonly string[]>): Promise<void> {
    const answers = await stop();
    expect(answers.filter((answer) => !answer.startsWith("{"))).toEqual([]);
    expect(answers.length).toBeGreaterThan(2);
  }

  test("a page that asks for it without a pause is let in each time, whatever sessions clients leave", async () => {
    const { page, keepAsking, letInAgain } = armed();
    const stop = await keepAsking();
    for (let round = 0; round < 6; round += 1) {
      const leaving = await connect();
      const sessions = [await leaving.attach(page), await leaving.attach(page)];
      const left = await leaving.send("Target.detachFromTarget", { sessionId: sessions[0] });
      expect(left.result).toEqual({});
      expect((await leaving.send("Runtime.evaluate", { expression: "0" }, sessions[0])).error?.message).toBe(
        "Session with given id not found.",
      );
      await leaving.close();
      await letInAgain();
    }
    await expectAnswers(stop);
  });

  test("so it is however many they leave, at once or one by one, and by the target's name", async () => {
    const { page, keepAsking, letInAgain } = armed();
    const stop = await keepAsking();
    const leaving = await connect();
    const sessions = await Promise.all(Array.from({ length: 300 }, () => leaving.attach(page)));
    for (const sessionId of sessions.slice(0, 150))
      leaving.socket.send(
        JSON.stringify({ id: 9000, method: "Target.detachFromTarget", params: { sessionId } }),
      );
    await leaving.send("Target.getTargets");
    await letInAgain();
    await leaving.close();
    await letInAgain();
    const other = await connect();
    await other.attach(page);
    expect((await other.send("Target.detachFromTarget", { targetId: page })).result).toEqual({});
    await letInAgain();
    // A session that comes just now is not known here yet, and would end in Chromium.
    const [attached, detached] = await Promise.all([
      other.send("Target.attachToTarget", { targetId: page, flatten: true }),
      other.send("Target.detachFromTarget", { targetId: page }),
    ]);
    expect(attached.result).toBeDefined();
    expect(detached.error?.message).toBe("No session with given id");
    await letInAgain();
    await other.close();
    await expectAnswers(stop);
  });

  test("so it is when a client would have all sessions ended that were attached unasked: it is told to leave them", async () => {
    const { keepAsking, letInAgain } = armed();
    const stop = await keepAsking();
    const client = await connect();
    const none = { ...attachAll, autoAttach: false };
    const [first, second] = await Promise.all([
      client.send("Target.setAutoAttach", attachAll),
      client.send("Target.setAutoAttach", none),
    ]);
    expect(first.result).toEqual({});
    expect(second.error?.message).toContain("while a passkey of a vault is armed in this browser");
    await letInAgain();
    // A long message is judged in another thread, which leaves little of its params here.
    const long = { ...none, unread: "y".repeat(70_000) };
    for (const asked of [none, long])
      expect((await client.send("Target.setAutoAttach", asked)).error?.message).toContain("while a passkey");
    await letInAgain();
    await expectAnswers(stop);
    await armed().disarm();
    expect((await client.send("Target.setAutoAttach", none)).result).toEqual({});
    await client.close();
  });

  test("nothing waits for a session that was left: no request, no dialog, no breakpoint, no tab", async () => {
    const { site, staying, page, open, evaluate, targets, signIn } = armed();
    const leaving = await connect();
    await leaving.send("Target.setDiscoverTargets", { discover: true });
    await leaving.send("Target.setAutoAttach", attachAll);
    for (const session of [await leaving.attach(page), await leaving.attach(page)]) {
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
    const url = `${site.other}/`;
    const { result } = await staying.send("Target.createTarget", { url });
    const tab = await staying.attach(String(result?.["targetId"]));
    // The empty document that is there before it is complete as well.
    await until(
      "the tab is there",
      async () => (await evaluate("document.readyState + location", tab)) === `complete${url}`,
    );
    expect(await signIn(tab)).toBe(true);
    expect(await signIn()).toBe(true);
    await staying.send("Target.closeTarget", { targetId: result?.["targetId"] });
  });

  test("a trace of a page that was left ends, and another client may begin one", async () => {
    const { staying, page, at } = armed();
    const leaving = await connect();
    const session = await leaving.attach(page);
    expect((await leaving.send("Tracing.start", {}, session)).result).toEqual({});
    await leaving.close();
    await until("another may begin", async () => !(await staying.send("Tracing.start", {}, at)).error);
    await staying.send("Tracing.end", {}, at);
  });

  test("nor does a tab that comes while a client leaves which would have held it", async () => {
    const { site, staying, evaluate } = armed();
    for (let round = 0; round < 10; round += 1) {
      const leaving = await connect();
      await leaving.send("Target.setAutoAttach", attachAll);
      const url = `${site.other}/other`;
      const creating = staying.send("Target.createTarget", { url });
      if (round % 2 === 0) leaving.socket.terminate();
      else await leaving.close();
      const targetId = String((await creating).result?.["targetId"]);
      const tab = await staying.attach(targetId);
      await until(
        "it runs",
        async () => (await evaluate("document.readyState + location", tab)) === `complete${url}`,
      );
      await staying.send("Target.closeTarget", { targetId });
    }
  });

  test("a session that was left ends when the passkey is taken away", async () => {
    const bed = armed();
    const { staying, page, targets, signIn } = bed;
    const isAttached = async (): Promise<boolean | undefined> =>
      (await targets()).find(({ targetId }) => targetId === page)?.attached;
    const leaving = await connect();
    await leaving.attach(page);
    await leaving.close();
    await staying.send("Target.detachFromTarget", { sessionId: bed.at });
    bed.at = await staying.attach(page);
    expect(await signIn()).toBe(true);
    await staying.send("Target.detachFromTarget", { sessionId: bed.at });
    expect(await isAttached()).toBe(true);
    await bed.disarm();
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
