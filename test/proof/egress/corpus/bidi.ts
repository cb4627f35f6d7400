import { connectBidi, type RawBidi } from "../../../support/gateway/raw-bidi.js";
import type { Attempt, Work } from "./attempt.js";

interface Driven {
  readonly client: RawBidi;
  /** A page of the attempt's own. */
  readonly context: string;
  readonly work: Work;
}

/** An attempt of a client of WebDriver BiDi. */
const overBidi = (name: string, attempt: (driven: Driven) => Promise<unknown>): Attempt => ({
  name: `BiDi: ${name}`,
  needs: ["bidi"],
  reachesPlain: { because: "Chromium alone speaks no WebDriver BiDi; the same commands of CDP get out" },
  async run(work) {
    const client = await connectBidi(work.bidiUrl);
    try {
      await client.begin();
      const { result } = await client.send("browsingContext.create", { type: "tab" });
      const context = String(result?.["context"]);
      await attempt({ client, context, work });
      await client.send("browsingContext.close", { context });
    } finally {
      await client.close();
    }
  },
});

const contextWith = (what: string, proxy: (work: Work) => object): Attempt =>
  overBidi(`browser.createUserContext with ${what}`, async ({ client, work }) => {
    const made = await client.send("browser.createUserContext", proxy(work));
    const userContext = made.result?.["userContext"];
    if (userContext === undefined) return;
    const { result } = await client.send("browsingContext.create", { type: "tab", userContext });
    await client.open(String(result?.["context"]), work.url());
  });

/**
 * What clients of WebDriver BiDi can ask for; each is carried out by commands of CDP that pass the same gate.
 */
export const bidi: readonly Attempt[] = [
  overBidi("browsingContext.navigate", ({ client, context, work }) => client.open(context, work.url())),
  overBidi("network.continueRequest with another URL", async ({ client, context, work }) => {
    await client.send("session.subscribe", { events: ["network.beforeRequestSent"], contexts: [context] });
    await client.send("network.addIntercept", { phases: ["beforeRequestSent"], contexts: [context] });
    const going = client.open(context, work.serve("/intercepted", {}));
    const { params } = await client.message(
      ({ method, params: { isBlocked } = {} }) =>
        method === "network.beforeRequestSent" && isBlocked === true,
    );
    const request = String((params?.["request"] as { request?: unknown } | undefined)?.request);
    await client.send("network.continueRequest", { request, url: work.url() });
    await going;
  }),
  overBidi("script.evaluate that fetches", async ({ client, context, work }) => {
    await client.open(context, work.serve("/page", {}));
    await client.evaluate(context, `fetch("${work.url()}", { mode: "no-cors" }).then(() => 1, () => 0)`);
  }),
  overBidi("script.addPreloadScript that fetches", async ({ client, context, work }) => {
    const functionDeclaration = `() => void fetch("${work.url()}", { mode: "no-cors" }).catch(() => {})`;
    await client.send("script.addPreloadScript", { functionDeclaration, contexts: [context] });
    await client.open(context, work.serve("/page", {}));
  }),
  contextWith("a proxy of its own", ({ world, port }) => ({
    proxy: { proxyType: "manual", httpProxy: `${world.denied}:${port}` },
  })),
  contextWith("a direct proxy", () => ({ proxy: { proxyType: "direct" } })),
  contextWith("goog:proxyServer direct://", () => ({ "goog:proxyServer": "direct://" })),
  overBidi("goog:cdp.sendCommand of a context with proxy direct://", async ({ client, work }) => {
    const params = { method: "Target.createBrowserContext", params: { proxyServer: "direct://" } };
    const { result } = await client.send("goog:cdp.sendCommand", params);
    const made = (result?.["result"] ?? {}) as { browserContextId?: string };
    if (made.browserContextId === undefined) return;
    const target = { url: work.url(), browserContextId: made.browserContextId };
    await client.send("goog:cdp.sendCommand", { method: "Target.createTarget", params: target });
  }),
];
