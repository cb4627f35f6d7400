import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Chromium } from "../../../src/browser/chromium.js";
import { systemClock } from "../../../src/base/clock.js";
import { Cdp } from "../../../src/browser/cdp/cdp.js";
import { PageAuthenticators } from "../../../src/browser/passkeys/page-authenticators.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { openTestHost, silentLog } from "../../support/browser/chromium-host.js";
import { kinds } from "../../support/browser/chromium-kinds.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { until } from "../../support/browser/chromium-until.js";
import { type FillSite, openFillSite } from "../../support/browser/fill/fill-bed.js";
import {
  credentialOf,
  impatientMs,
  openRelyingParty,
  type RelyingParty,
} from "../../support/vault/relying-party.js";

let host: BrowserHost;
let site: FillSite;
beforeAll(async () => {
  [host, site] = await Promise.all([openTestHost(), openFillSite()]);
});
const { launch, killAll } = makeLauncher(() => host);
afterAll(async () => {
  await killAll();
  await Promise.all([host.close(), site.close()]);
});

describe.each(kinds)("%s", (_, spec) => {
  let chromium: Chromium;
  let client: PipeClient;
  let party: RelyingParty;
  let session: string;
  beforeAll(async () => {
    chromium = await launch(spec);
    client = new PipeClient(chromium);
    session = await client.attach();
  });
  beforeEach(async () => {
    party = openRelyingParty(site.other);
    site.serve({ body: "sign in", others: { "/other": "sign in" } });
    await client.open("about:blank", session);
    await client.open(`${site.other}/`, session);
  });

  const arm = (signCount = 0): Promise<() => Promise<void>> =>
    chromium.armPasskey(credentialOf(party, signCount));
  /** True where the site lets the page in; the name of the page's error where it was given none. */
  async function signIn(at: string, limitMs?: number): Promise<boolean | string> {
    const { script, verify } = await party.challenge(limitMs);
    const answer = String(await client.evaluate(script, at));
    return answer.startsWith("{") ? await verify(answer) : answer;
  }
  const openTab = async (script = ""): Promise<string> => {
    const known = new Set((await client.targets()).map(({ targetId }) => targetId));
    if (script) await client.evaluate(script, session);
    else await client.send("Target.createTarget", { url: `${site.other}/other` });
    const opened = await until("another page", async () =>
      (await client.targets()).find(({ targetId, url }) => !known.has(targetId) && url.endsWith("/other")),
    );
    const at = await client.attach(opened.targetId);
    // A target is listed by the address that it is on its way to.
    const isThere = "document.readyState === 'complete' && location.pathname === '/other'";
    await until("it is there", () => client.evaluate(isThere, at));
    return at;
  };

  test("a page that is open signs in, and each assertion counts on from the counter that was given", async () => {
    const disarm = await arm(41);
    expect(await signIn(session)).toBe(true);
    expect(party.counter).toBe(42);
    expect(await signIn(session)).toBe(true);
    expect(party.counter).toBe(43);
    await disarm();
    expect(await signIn(session, impatientMs)).not.toBe(true);
  });

  test("so do tabs and popups that come later; all count together", async () => {
    const disarm = await arm();
    expect(await signIn(session)).toBe(true);
    const tab = await openTab();
    expect(await signIn(tab)).toBe(true);
    const popup = await openTab(`window.open("/other"), 0`);
    expect(await signIn(popup)).toBe(true);
    expect(party.counter).toBe(3);
    // One that asks while it is told of the others' counter waits in vain until it is loaded anew.
    await until("the first has heard of it", async () => {
      await client.open("about:blank", session);
      await client.open(`${site.other}/`, session);
      return (await signIn(session, impatientMs)) === true;
    });
    expect(party.counter).toBe(4);
    await disarm();
  });

  test("after as many assertions as nobody needs it is to be taken away, before the counter is where the next browser begins", async () => {
    let isOver = (): void => {};
    const over = new Promise<void>((resolve) => (isOver = resolve));
    const disarm = await chromium.armPasskey(credentialOf(party, 41), { usedUp: () => isOver() });
    const { script, verify } = await party.challenge();
    await client.evaluate(
      `void (async () => {
        while (true) {
          const answer = await ${script};
          if (!answer.startsWith("{")) return;
          window.last = answer;
        }
      })()`,
      session,
    );
    await over;
    await disarm();
    expect(await verify(String(await client.evaluate("last", session)))).toBe(true);
    expect(party.counter).toBeGreaterThanOrEqual(541);
    expect(party.counter).toBeLessThan(10_041);
  });

  test("a client's session that ends takes it from the page, which is given it again", async () => {
    const sent: string[] = [];
    const pipe = {
      ...chromium.pipe,
      send(text: string) {
        sent.push(text);
        chromium.pipe.send(text);
      },
    };
    const countOf = (method: string): number => sent.filter((text) => text.includes(`"${method}"`)).length;
    const cdp = new Cdp(pipe, systemClock);
    const authenticators = new PageAuthenticators({
      cdp,
      clock: systemClock,
      log: silentLog,
      credential: credentialOf(party, 0),
    });
    await authenticators.open();
    expect(await signIn(session)).toBe(true);
    const given = countOf("WebAuthn.addCredential");
    const other = await client.attach((await client.targets())[0]?.targetId);
    await client.send("Target.detachFromTarget", { sessionId: other });
    await until("it is given again", () => countOf("WebAuthn.addCredential") > given);
    const looks = countOf("WebAuthn.getCredential");
    await until("it was looked for, and found", () => countOf("WebAuthn.getCredential") > looks);
    expect(await signIn(session)).toBe(true);
    expect(party.counter).toBe(2);
    await authenticators.close();
  });

  test("a page that comes later and cannot have it goes on without it, and nothing else fails", async () => {
    const faults: unknown[] = [];
    const note = (fault: unknown): void => void faults.push(fault);
    process.on("unhandledRejection", note);
    onTestFinished(() => void process.off("unhandledRejection", note));
    let given = "WebAuthn.addVirtualAuthenticator";
    const send = (text: string): void =>
      chromium.pipe.send(text.replace("WebAuthn.addVirtualAuthenticator", given));
    const authenticators = new PageAuthenticators({
      cdp: new Cdp({ ...chromium.pipe, send }, systemClock),
      clock: systemClock,
      log: silentLog,
      credential: credentialOf(party, 0),
    });
    await authenticators.open();
    // Chromium refuses it, as it does where a page closes at that moment.
    given = "WebAuthn.unknown";
    expect(await signIn(await openTab(), impatientMs)).not.toBe(true);
    expect(await signIn(session)).toBe(true);
    await authenticators.close();
    expect(faults).toEqual([]);
  });
});
