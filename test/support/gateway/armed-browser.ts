import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import type { LaunchSpec } from "../../../src/browser/chromium.js";
import { CdpFailure, until } from "../browser/chromium-until.js";
import { type FillSite, openFillSite } from "../browser/fill/fill-bed.js";
import { credentialOf, openRelyingParty, type RelyingParty } from "../vault/relying-party.js";
import { type GatewayBrowser, openGatewayBrowser } from "./gateway-browser.js";
import { connectRaw, type RawCdp, type RawReply } from "./raw-cdp.js";

interface SeenTarget {
  readonly targetId: string;
  readonly type: string;
  readonly url: string;
  readonly attached: boolean;
}

/** A browser behind a gateway, whose page is that of a site which lets in by a passkey. */
export interface ArmedBrowser {
  readonly browser: GatewayBrowser;
  readonly site: FillSite;
  readonly party: RelyingParty;
  /** A client that stays. */
  readonly staying: RawCdp;
  /** The page's target. */
  readonly page: string;
  /** The session of the client that stays on the page; a test may put another there. */
  at: string;
  ask(expression: string, session?: string): Promise<RawReply>;
  evaluate(expression: string, session?: string): Promise<unknown>;
  /** Opens an address in the page, and waits until it is there. */
  open(url: string): Promise<void>;
  /** True where the site lets the page in; what the page was answered where it was given no passkey. */
  signIn(session?: string): Promise<boolean | string>;
  /** The page asks without a pause from now on, until the returned function gives what it was answered. */
  keepAsking(): Promise<() => Promise<readonly string[]>>;
  /** Resolves when a page that keeps asking has been let in a few times more. */
  letInAgain(): Promise<void>;
  targets(): Promise<readonly SeenTarget[]>;
  disarm: () => Promise<void>;
}

/** One for all tests of a block; each has the browser armed with a passkey of its own. */
export function armedBrowser(spec: Partial<LaunchSpec>): () => ArmedBrowser {
  let browser: GatewayBrowser;
  let site: FillSite;
  let page: string;
  let bed: ArmedBrowser | undefined;
  beforeAll(async () => {
    [browser, site] = await Promise.all([openGatewayBrowser(spec), openFillSite()]);
    site.serve({ body: "sign in", others: { "/other": "sign in" } });
    const client = await connectRaw(browser.url());
    page = (await targetsOf(client)).find(({ type }) => type === "page")?.targetId ?? "";
    await client.close();
  });
  afterAll(async () => {
    await browser.close();
    await site.close();
  });
  beforeEach(async () => {
    const party = openRelyingParty(site.other);
    const staying = await connectRaw(browser.url());
    const at = await staying.attach(page);
    bed = withPage({ browser, site, party, staying, page, at });
    await bed.open(`${site.other}/`);
    bed.disarm = await browser.chromium.armPasskey(credentialOf(party));
  });
  afterEach(async () => {
    await bed?.disarm();
    await bed?.staying.close();
  });
  return () => {
    if (!bed) throw new Error("the browser is there once tests run");
    return bed;
  };
}

type Opened = Pick<ArmedBrowser, "browser" | "site" | "party" | "staying" | "page" | "at">;

function withPage(opened: Opened): ArmedBrowser {
  const { staying, party } = opened;
  const bed: ArmedBrowser = {
    ...opened,
    ask: (expression, session = bed.at) =>
      staying.send(
        "Runtime.evaluate",
        { expression, returnByValue: true, awaitPromise: true, userGesture: true },
        session,
      ),
    async evaluate(expression, session) {
      const { result } = await bed.ask(expression, session);
      return (result?.["result"] as { value?: unknown } | undefined)?.value;
    },
    async open(url) {
      // Chromium breaks off what it is loading where other tests change the machine's networks.
      await until(
        `${url} opened`,
        async () =>
          (await staying.send("Page.navigate", { url }, bed.at)).result?.["errorText"] === undefined,
      );
      await until(`${url} is there`, async () => {
        const where = await bed.evaluate("document.readyState + location");
        if (where !== `complete${url}`) throw new CdpFailure(`the page is at ${String(where)}`);
        return true;
      });
    },
    async signIn(session) {
      const { script, verify } = await party.challenge();
      const answer = String(await bed.evaluate(script, session));
      return answer.startsWith("{") ? await verify(answer) : answer;
    },
    async keepAsking() {
      const { script } = await party.challenge();
      await bed.evaluate(`window.answers = []; (async () => {
        while (!window.isEnough) answers.push(await ${script});
      })(), 0`);
      return async () => (await bed.evaluate("isEnough = true, answers")) as string[];
    },
    async letInAgain() {
      const count = async (): Promise<number> => Number(await bed.evaluate("answers.length"));
      const before = await count();
      await until("it has been let in again", async () => (await count()) > before + 2);
    },
    targets: () => targetsOf(staying),
    disarm: async () => {},
  };
  return bed;
}

const targetsOf = async (client: RawCdp): Promise<readonly SeenTarget[]> =>
  (await client.send("Target.getTargets")).result?.["targetInfos"] as never;
