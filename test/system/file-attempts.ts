import { expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { RawCdp } from "../support/gateway/raw-cdp.js";

/** A file of the host that must not be read, and a site that pages may come from. */
export interface Wanted {
  readonly path: string;
  readonly origin: string;
}

/** A way to a file; what it gives, and whatever pages then show, must not contain the file's words. */
export type Attempt = (client: RawCdp, page: string, file: Wanted) => Promise<unknown>;
const inPage =
  (script: (url: string) => string): Attempt =>
  async (client, page, { path, origin }) => {
    await client.send("Page.navigate", { url: origin }, page);
    return await client.send(
      "Runtime.evaluate",
      {
        expression: limited(script(`file://${path}`)),
        awaitPromise: true,
        returnByValue: true,
        userGesture: true,
      },
      page,
    );
  };
export const limited = (work: string): string =>
  `Promise.race([(async () => { ${work} })().catch(String), new Promise((resolve) => setTimeout(resolve, 500))])`;
type UrlOf = (path: string, origin: string) => string;
const navigate =
  (urlOf: UrlOf): Attempt =>
  (client, page, { path, origin }) =>
    client.send("Page.navigate", { url: urlOf(path, origin) }, page);
const create =
  (urlOf: UrlOf): Attempt =>
  (client, _, { path, origin }) =>
    client.send("Target.createTarget", { url: urlOf(path, origin) });

export const attempts: Readonly<Record<string, Attempt>> = {
  "Page.navigate": navigate((path) => `file://${path}`),
  "Page.navigate, odd spelling": navigate((path) => ` fi\nle:/${path}`),
  "Page.navigate to its source": navigate((path) => `view-source:file://${path}`),
  "Page.navigate, host named": navigate((path) => `file://localhost${path}`),
  "Page.navigate, redirected": navigate(
    (path, origin) => `${origin}/?to=${encodeURIComponent(`file://${path}`)}`,
  ),
  "Target.createTarget": create((path) => `file://${path}`),
  "Target.createTarget, redirected": create(
    (path, origin) => `${origin}/?to=${encodeURIComponent(`file://${path}`)}`,
  ),
  "Network.loadNetworkResource": async (client, page, { path, origin }) => {
    await client.send("Page.navigate", { url: origin }, page);
    const { result } = await client.send("Page.getFrameTree", {}, page);
    const frameId = (result?.frameTree as { frame: { id: string } } | undefined)?.frame.id;
    const loaded = await client.send(
      "Network.loadNetworkResource",
      { frameId, url: `file://${path}`, options: { disableCache: true, includeCredentials: true } },
      page,
    );
    const stream = (loaded.result?.resource as { stream?: string } | undefined)?.stream;
    return stream === undefined ? loaded : await client.send("IO.read", { handle: stream }, page);
  },
  "DOM.setFileInputFiles": async (client, page, { path, origin }) => {
    await client.send("Page.navigate", { url: origin }, page);
    await expect.poll(() => client.evaluate("document.querySelector('input') !== null", page)).toBe(true);
    const { result } = await client.send(
      "Runtime.evaluate",
      { expression: "document.querySelector('input')" },
      page,
    );
    const { objectId = "" } = (result?.result ?? {}) as { objectId?: string };
    const answer = await client.send("DOM.setFileInputFiles", { files: [path], objectId }, page);
    return [
      answer,
      await client.evaluate(limited("return await document.querySelector('input').files[0]?.text()"), page),
    ];
  },
  "Input.dispatchDragEvent": (client, page, { path }) =>
    client.send(
      "Input.dispatchDragEvent",
      { type: "drop", x: 5, y: 5, data: { items: [], files: [path], dragOperationsMask: 1 } },
      page,
    ),
  "Extensions.loadUnpacked": (client, _, { path }) => client.send("Extensions.loadUnpacked", { path }),
  "Fetch.fulfillRequest with a redirect": async (client, page, { path, origin }) => {
    await client.send("Fetch.enable", {}, page);
    const going = client.send("Page.navigate", { url: `${origin}/fulfilled` }, page);
    const { params } = await client.message(({ method }) => method === "Fetch.requestPaused");
    await client.send(
      "Fetch.fulfillRequest",
      {
        requestId: params?.requestId,
        responseCode: 302,
        responseHeaders: [{ name: "location", value: `file://${path}` }],
      },
      page,
    );
    return await going;
  },
  location: inPage(
    (url) =>
      `location.href = ${JSON.stringify(url)}; await new Promise((resolve) => setTimeout(resolve, 200));`,
  ),
  "window.open": inPage(
    (url) => `window.open(${JSON.stringify(url)}); await new Promise((resolve) => setTimeout(resolve, 200));`,
  ),
  fetch: inPage((url) => `return await (await fetch(${JSON.stringify(url)})).text();`),
  XMLHttpRequest: inPage(
    (url) =>
      `return await new Promise((resolve) => { const request = new XMLHttpRequest(); request.onloadend = () => resolve(request.responseText); request.open("GET", ${JSON.stringify(url)}); request.send(); });`,
  ),
  frame: inPage(
    (url) =>
      `const frame = document.createElement("iframe"); frame.src = ${JSON.stringify(url)}; document.body.append(frame); await new Promise((resolve) => setTimeout(resolve, 200)); return frame.contentDocument?.body?.innerText;`,
  ),
  script: inPage((url) => `return await import(${JSON.stringify(url)});`),
  "a world with all access": async (client, page, { path, origin }) => {
    await client.send("Page.navigate", { url: origin }, page);
    const { result } = await client.send("Page.getFrameTree", {}, page);
    const frameId = (result?.frameTree as { frame: { id: string } } | undefined)?.frame.id;
    const world = await client.send("Page.createIsolatedWorld", { frameId, grantUniveralAccess: true }, page);
    const expression = limited(
      `const request = new XMLHttpRequest(); request.open("GET", "file://${path}", false); request.send(); return request.responseText;`,
    );
    return await client.send(
      "Runtime.evaluate",
      { expression, contextId: world.result?.executionContextId, awaitPromise: true, returnByValue: true },
      page,
    );
  },
  "the developer tools' own page": async (client, _, { path }) => {
    const { result } = await client.send("Target.createTarget", {
      url: "devtools://devtools/bundled/inspector.html",
    });
    if (result === undefined) return "refused";
    const tools = await client.attach(String(result.targetId));
    await client.send("Runtime.enable", {}, tools);
    const expression = `new Promise((resolve) => {
      let text = "";
      globalThis.DevToolsAPI = { ...globalThis.DevToolsAPI, streamWrite: (_, chunk) => (text += chunk), embedderMessageAck: (_, answer) => resolve(JSON.stringify(answer) + text) };
      globalThis.DevToolsHost?.sendMessageToEmbedder(JSON.stringify({ id: 7, method: "loadNetworkResource", params: ["file://${path}", "", 1] }));
      setTimeout(() => resolve(text), 500);
    })`;
    return await client.evaluate(expression, tools);
  },
};

/** Everything any page shows by now. */
export async function shown(client: RawCdp): Promise<string> {
  const { result } = await client.send("Target.getTargets");
  const pages = ((result?.targetInfos ?? []) as { type: string; targetId: string }[]).filter(
    ({ type }) => type === "page" || type === "iframe",
  );
  const texts = await Promise.all(
    pages.map(async ({ targetId }) => {
      const session = await client.attach(targetId);
      // Others close theirs meanwhile, and what is asked while a page goes elsewhere may never be answered.
      const { text } = await until("what a page shows", async () => ({
        text: await client.evaluate("document.documentElement?.outerHTML ?? ''", session).catch(() => ""),
      }));
      return text;
    }),
  );
  return texts.join("\n");
}
