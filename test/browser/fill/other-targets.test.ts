import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Chromium } from "../../../src/browser/chromium.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import type { PageFill } from "../../../src/spec/page-fill.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { openTestHost } from "../../support/browser/chromium-host.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { until } from "../../support/browser/chromium-until.js";
import { fillBy, fillOf, pausedPipe, shorten, valuesOf } from "../../support/browser/fill/fill-bed.js";
import { login } from "../../support/browser/fill/fill-case.js";

const pages: Readonly<Record<string, string>> = {
  "/": login,
  "/worked": `${login}<script>navigator.serviceWorker.register("/worker.js")</script>`,
  "/next": login,
  "/shown-again": `${login}<script>onpageshow = ({ persisted }) => { self.isBack = persisted; }</script>`,
};

let host: BrowserHost;
let server: Server;
let here = "";
beforeAll(async () => {
  host = await openTestHost();
  server = createServer(({ url = "/" }, response) => {
    if (url === "/worker.js")
      return response
        .setHeader("content-type", "text/javascript")
        .end("self.onfetch = () => {}; self.onactivate = (event) => event.waitUntil(clients.claim());");
    const body = pages[url];
    if (body === undefined) return response.writeHead(404).end();
    return response.setHeader("content-type", "text/html").end(`<!doctype html><body>${body}`);
  }).listen(0, "127.0.0.1");
  await until("the site", () => server.listening);
  here = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
const { launch, killAll } = makeLauncher(() => host);
afterAll(async () => {
  await killAll();
  server.closeAllConnections();
  await new Promise((resolve) => void server.close(resolve));
  await host.close();
});

const fields = [
  ["#user", "secret-1"],
  ["#password", "secret-2"],
] as const;
const both = { user: "secret-1", password: "secret-2" };
const done = { status: "completed", outcomes: ["filled", "filled"] };
const notFound = { kind: "refused", why: "page_not_found" };

describe.each(engines)("%s", (_, spec) => {
  let chromium: Chromium;
  let client: PipeClient;
  let session: string;
  beforeAll(async () => {
    chromium = await launch(spec);
    client = new PipeClient(chromium);
  });
  beforeEach(async () => {
    session = await client.attach();
    await client.open(`${here}/`, session);
  });

  afterEach(() => client.send("Target.detachFromTarget", { sessionId: session }).catch(() => {}));

  const fill = async (over: Partial<PageFill> = {}, pipe = chromium.pipe): Promise<object> =>
    shorten(await fillBy(pipe, { ...fillOf({ fields }), ...over }));
  const values = (): Promise<Record<string, string>> => valuesOf(client);
  /** The answer may go with the page. */
  const goBack = (): Promise<unknown> =>
    client.send("Runtime.evaluate", { expression: "history.back()" }, session).catch(() => {});
  const allTargets = async () => {
    const { targetInfos } = await client.send("Target.getTargets", { filter: [{}] });
    return targetInfos as readonly {
      readonly type: string;
      readonly subtype?: string;
      readonly url: string;
    }[];
  };

  test("a service worker is no page: the one that it serves is filled", async () => {
    await client.open(`${here}/worked`, session);
    await until("the worker serves the page", () =>
      client.evaluate("navigator.serviceWorker.controller !== null", session),
    );
    const workers = (await allTargets()).filter(({ type }) => type === "service_worker");
    expect(workers.map(({ url }) => url)).toEqual([`${here}/worker.js`]);
    expect(await fill({ page_url: `${here}/worker.js` })).toEqual(notFound);
    expect(await fill()).toEqual(done);
    expect(await values()).toEqual(both);
    await client.evaluate(
      "navigator.serviceWorker.getRegistration().then((found) => found.unregister())",
      session,
    );
  });

  test("a page that is kept for going back is no page until it is shown again", async () => {
    await client.open(`${here}/shown-again`, session);
    await client.open(`${here}/next`, session);
    expect(await fill({ page_url: `${here}/shown-again` })).toEqual(notFound);
    expect(await fill()).toEqual(done);
    await goBack();
    await until("it is back", async () => (await client.targets())[0]?.url === `${here}/shown-again`);
    expect(await values()).toEqual({});
    expect(await fill({ page_url: `${here}/shown-again` })).toEqual(done);
    expect(await values()).toEqual(both);
  });

  test("a page that is put aside amid a fill is not written, nor is the one that is shown", async () => {
    await client.open(`${here}/shown-again`, session);
    const leaving = pausedPipe(chromium.pipe, "this.write(", async () => {
      await client.evaluate(`void (location.href = "/next")`, session);
      await until("the next", async () => (await client.targets())[0]?.url === `${here}/next`);
    });
    expect(await fill({}, leaving)).toEqual({
      status: "failed",
      outcomes: ["failed target_changed", "not_attempted"],
    });
    expect(await values()).toEqual({});
    await goBack();
    await until("it is back", async () => (await client.targets())[0]?.url === `${here}/shown-again`);
    expect(await values()).toEqual({});
  });
});
