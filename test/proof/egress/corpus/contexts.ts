import { chromium as playwright } from "playwright-core";
import puppeteer from "puppeteer-core";
import type { RawCdp, RawReply } from "../../../support/gateway/raw-cdp.js";
import type { Attempt, Never, Work } from "./attempt.js";
import { Page } from "./page.js";

/** How a command reaches Chromium. */
type Send = (method: string, params?: object) => Promise<RawReply>;

/** The browser is a target too: that of a session which belongs to no other. */
const browserOf = async (cdp: RawCdp): Promise<string> => {
  const { result } = await cdp.send("Target.getTargetInfo");
  return (result?.targetInfo as { targetId: string } | undefined)?.targetId ?? "";
};

/** A command in a command: not flat, its answers come back inside events. */
async function tunnel(cdp: RawCdp, target: string): Promise<Send> {
  const { result } = await cdp.send("Target.attachToTarget", { targetId: target, flatten: false });
  const sessionId = String(result?.sessionId);
  let last = 0;
  return async (method, params = {}) => {
    last += 1;
    const id = last;
    const sent = await cdp.send("Target.sendMessageToTarget", {
      sessionId,
      message: JSON.stringify({ id, method, params }),
    });
    if (sent.error) return sent;
    const inside = ({ params: given }: RawReply): RawReply =>
      JSON.parse(String(given?.message ?? "{}")) as RawReply;
    return inside(
      await cdp.message(
        (each) =>
          each.method === "Target.receivedMessageFromTarget" &&
          each.params?.sessionId === sessionId &&
          inside(each).id === id,
      ),
    );
  };
}

const nested = async (cdp: RawCdp): Promise<Send> => {
  const { result } = await cdp.send("Target.attachToBrowserTarget");
  return (method, params) => cdp.send(method, params, String(result?.sessionId));
};

const paths: Readonly<Record<string, (work: Work) => Promise<Send>>> = {
  flat: async ({ cdp }) => cdp.send,
  "nested by attachToBrowserTarget": ({ cdp }) => nested(cdp),
  "nested twice": async ({ cdp }) => {
    const { result } = await cdp.send("Target.attachToBrowserTarget");
    const inner = await cdp.send("Target.attachToBrowserTarget", {}, String(result?.sessionId));
    return (method, params) => cdp.send(method, params, String(inner.result?.sessionId));
  },
  "by sendMessageToTarget to the browser": async ({ cdp }) => tunnel(cdp, await browserOf(cdp)),
  "attached to the browser as a target": async ({ cdp }) => {
    const { result } = await cdp.send("Target.attachToTarget", {
      targetId: await browserOf(cdp),
      flatten: true,
    });
    return (method, params) => cdp.send(method, params, String(result?.sessionId));
  },
};

/** Proxies a context might be given; the sink itself is one that would carry anything. */
const proxies: Readonly<Record<string, (work: Work) => object>> = {
  "direct://": () => ({ proxyServer: "direct://" }),
  empty: () => ({ proxyServer: "" }),
  "of its own": ({ world, port }) => ({ proxyServer: `http://${world.denied}:${port}` }),
  "of its own, SOCKS": ({ world, port }) => ({ proxyServer: `socks5://${world.denied}:${port}` }),
  "a list that ends direct": () => ({ proxyServer: "http://127.0.0.1:9,direct://" }),
  "by scheme": () => ({ proxyServer: "http=direct://;https=direct://" }),
  "the given one, bypassed": () => ({ proxyServer: "http://127.0.0.1:9", proxyBypassList: "*" }),
};

const visit = async (work: Work, context: unknown): Promise<void> => {
  if (typeof context === "string") await Page.open(work.cdp, work.url(), context);
};

const inContext = (path: string, proxy: string, reachesPlain: true | Never = true): Attempt => ({
  name: `context with proxy ${proxy}, ${path}`,
  needs: ["privileged-cdp"],
  leavesProxy: true,
  reachesPlain,
  async run(work) {
    const send = await paths[path]?.(work);
    const reply = await send?.("Target.createBrowserContext", proxies[proxy]?.(work));
    await visit(work, reply?.result?.browserContextId);
  },
});

const create = `"method":"Target.createBrowserContext"`;
const direct = `{"proxyServer":"direct://"}`;

/** One message as text, whose fields a gate and Chromium might read differently. */
const texts: Readonly<Record<string, { readonly text: (id: number) => string; readonly isBinary?: true }>> = {
  "method twice, the other first": {
    text: (id) => `{"id":${id},"method":"Browser.getVersion",${create},"params":${direct}}`,
  },
  "method twice, the other last": {
    text: (id) => `{"id":${id},${create},"method":"Browser.getVersion","params":${direct}}`,
  },
  "params twice, the empty first": { text: (id) => `{"id":${id},${create},"params":{},"params":${direct}}` },
  "params twice, the empty last": { text: (id) => `{"id":${id},${create},"params":${direct},"params":{}}` },
  "proxyServer twice": {
    text: (id) => `{"id":${id},${create},"params":{"proxyServer":"","proxyServer":"direct://"}}`,
  },
  "escaped key": { text: (id) => `{"id":${id},${create},"params":{"proxy\\u0053erver":"direct://"}}` },
  "escaped method": {
    text: (id) => `{"id":${id},"method":"Target.createBrowser\\u0043ontext","params":${direct}}`,
  },
  "escaped name of the field": {
    text: (id) => `{"id":${id},"m\\u0065thod":"Target.createBrowserContext","params":${direct}}`,
  },
  "a comment within": { text: (id) => `{"id":${id},/* held */${create},"params":${direct}}` },
  "a mark of byte order before": { text: (id) => `\ufeff{"id":${id},${create},"params":${direct}}` },
  "text after the message": { text: (id) => `{"id":${id},${create},"params":${direct}} held` },
  "a second message behind a NUL": {
    text: (id) => `{"id":${id + 1},"method":"Browser.getVersion"}\0{"id":${id},${create},"params":${direct}}`,
  },
  "a comma too many": { text: (id) => `{"id":${id},${create},"params":${direct},}` },
  "a binary frame": { text: (id) => `{"id":${id},${create},"params":${direct}}`, isBinary: true },
};

const asText = (what: string, reachesPlain: true | Never): Attempt => ({
  name: `context with proxy direct://, ${what}`,
  needs: ["privileged-cdp"],
  leavesProxy: true,
  reachesPlain,
  async run(work) {
    const id = 7_000_000;
    const { text, isBinary } = texts[what] ?? { text: () => "" };
    work.cdp.socket.send(text(id), { binary: isBinary === true });
    // What cannot be read is refused without an id.
    const isReply = (each: RawReply): boolean =>
      each.id === id || (each.id === undefined && each.error !== undefined);
    const reply = await Promise.race([work.cdp.message(isReply), work.cdp.closed.then(() => undefined)]);
    await visit(work, reply?.result?.browserContextId);
  },
});

const refusedByChromium: Never = { because: "Chromium 156 refuses such a message itself" };
const acceptedTexts = new Set([
  "proxyServer twice",
  "escaped key",
  "escaped method",
  "escaped name of the field",
]);

interface ProxyOption {
  readonly server: (work: Work) => string;
  readonly bypass?: string;
}

const throughPlaywright = (
  what: string,
  { server, bypass }: ProxyOption,
  reachesPlain: true | Never = true,
): Attempt => ({
  name: `Playwright's newContext with proxy ${what}`,
  needs: ["privileged-cdp"],
  leavesProxy: true,
  reachesPlain,
  async run(work) {
    const browser = await playwright.connectOverCDP(work.cdpUrl, { timeout: 5000 });
    try {
      const context = await browser.newContext({
        proxy: { server: server(work), ...(bypass !== undefined && { bypass }) },
      });
      await (await context.newPage()).goto(work.url(), { timeout: 8000 }).catch(() => {});
      await context.close();
    } finally {
      await browser.close();
    }
  },
});

const throughPuppeteer = (what: string, options: (work: Work) => object): Attempt => ({
  name: `Puppeteer's createBrowserContext with proxy ${what}`,
  needs: ["privileged-cdp"],
  leavesProxy: true,
  reachesPlain: true,
  async run(work) {
    const browser = await puppeteer.connect({ browserWSEndpoint: work.cdpUrl, protocolTimeout: 5000 });
    try {
      const context = await browser.createBrowserContext(options(work));
      await (await context.newPage()).goto(work.url(), { timeout: 8000 }).catch(() => {});
      await context.close();
    } finally {
      await browser.disconnect();
    }
  },
});

/** The script of a page that holds a browser-level connection as `held`. */
const throughExposed = (url: string): string => `
  const answers = new Map(); let last = 0;
  held.onmessage = (text) => { const { id, result } = JSON.parse(text); answers.get(id)?.(result); };
  const send = (method, params) => new Promise((resolve) => { last += 1; answers.set(last, resolve); held.send(JSON.stringify({ id: last, method, params })); });
  const { browserContextId } = await soon(send("Target.createBrowserContext", { proxyServer: "direct://" })) ?? {};
  if (browserContextId) await soon(send("Target.createTarget", { url: ${JSON.stringify(url)}, browserContextId }));
  await soon(new Promise(() => {}), 500);`;

const exposed = (path: string): Attempt => ({
  name: `Target.exposeDevToolsProtocol, ${path}`,
  needs: ["privileged-cdp"],
  leavesProxy: true,
  reachesPlain: true,
  async run(work) {
    const page = await work.open();
    const send = await paths[path]?.(work);
    await send?.("Target.exposeDevToolsProtocol", {
      targetId: page.target,
      bindingName: "held",
      inheritPermissions: true,
    });
    await page.goto(work.serve("/again", {}));
    await page.evaluate(throughExposed(work.url()));
  },
});

export const contexts: readonly Attempt[] = [
  ...Object.keys(proxies).map((proxy) => inContext("flat", proxy)),
  ...Object.keys(paths)
    .filter((path) => path !== "flat")
    .flatMap((path) => ["direct://", "of its own"].map((proxy) => inContext(path, proxy))),
  ...Object.keys(texts).map((what) => asText(what, acceptedTexts.has(what) ? true : refusedByChromium)),
  throughPlaywright(
    "direct://",
    { server: () => "direct://" },
    { because: "Playwright makes an HTTP proxy of every text" },
  ),
  throughPlaywright("of its own", { server: ({ world, port }) => `http://${world.denied}:${port}` }),
  throughPlaywright("of its own, SOCKS", { server: ({ world, port }) => `socks5://${world.denied}:${port}` }),
  throughPlaywright("that is bypassed", { server: () => "http://127.0.0.1:9", bypass: "*" }),
  throughPuppeteer("direct://", () => ({ proxyServer: "direct://" })),
  throughPuppeteer("of its own", ({ world, port }) => ({ proxyServer: `http://${world.denied}:${port}` })),
  throughPuppeteer("that is bypassed", () => ({ proxyServer: "http://127.0.0.1:9", proxyBypassList: ["*"] })),
  exposed("flat"),
  exposed("nested by attachToBrowserTarget"),
];
