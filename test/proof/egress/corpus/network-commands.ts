import { connect, createServer, type AddressInfo } from "node:net";
import type { Attempt, Work } from "./attempt.js";
import { command, frameOf, image, onPage } from "./command.js";
import type { Page } from "./page.js";

/** Intercepts requests of a page and hands the first to `answer`. */
async function intercept(
  work: Work,
  answer: (page: Page, request: string) => Promise<unknown>,
): Promise<void> {
  const page = await work.open();
  await page.command("Fetch.enable", { patterns: [{ urlPattern: "*/intercepted" }] });
  const going = page.goto(work.serve("/intercepted", {}));
  const paused = await work.cdp.message(
    ({ method, sessionId }) => method === "Fetch.requestPaused" && sessionId === page.session,
  );
  await answer(page, String(paused.params?.requestId));
  await going;
}

const fetches: readonly Attempt[] = [
  command("Fetch.continueRequest with another URL", (work) =>
    intercept(work, (page, requestId) =>
      page.command("Fetch.continueRequest", { requestId, url: work.url() }),
    ),
  ),
  command("Fetch.fulfillRequest with a redirect", (work) =>
    intercept(work, (page, requestId) =>
      page.command("Fetch.fulfillRequest", {
        requestId,
        responseCode: 302,
        responseHeaders: [{ name: "location", value: work.url() }],
      }),
    ),
  ),
  command("Fetch.fulfillRequest with a document", (work) =>
    intercept(work, (page, requestId) =>
      page.command("Fetch.fulfillRequest", {
        requestId,
        responseCode: 200,
        responseHeaders: [{ name: "content-type", value: "text/html" }],
        body: Buffer.from(image(work.url())).toString("base64"),
      }),
    ),
  ),
  command(
    "Network.continueInterceptedRequest with another URL",
    async (work) => {
      const page = await work.open();
      const { error } = await page.command("Network.setRequestInterception", {
        patterns: [{ urlPattern: "*/intercepted" }],
      });
      if (error !== undefined) return;
      const going = page.goto(work.serve("/intercepted", {}));
      const paused = await work.cdp.message(
        ({ method, sessionId }) => method === "Network.requestIntercepted" && sessionId === page.session,
      );
      await page.command("Network.continueInterceptedRequest", {
        interceptionId: paused.params?.interceptionId,
        url: work.url(),
      });
      await going;
    },
    { reachesPlain: { because: "gone from Chromium 156" } },
  ),
];

/** A port on which nobody listens. */
async function freePort(): Promise<AddressInfo> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address() as AddressInfo;
  await new Promise((resolve) => void server.close(resolve));
  return address;
}

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });

const network: readonly Attempt[] = [
  onPage("Network.loadNetworkResource", {
    method: "Network.loadNetworkResource",
    params: async (work, page) => ({
      frameId: await frameOf(page),
      url: work.url(),
      options: { disableCache: true, includeCredentials: false },
    }),
  }),
  command(
    "Network.loadNetworkResource without a frame",
    (work) =>
      work.cdp.send("Network.loadNetworkResource", {
        url: work.url(),
        options: { disableCache: true, includeCredentials: false },
      }),
    { reachesPlain: { because: "the browser's own session has no such command" } },
  ),
  command(
    "Network.setExtraHTTPHeaders with the Host of a denied one",
    async (work) => {
      const page = await work.open();
      await page.command("Network.enable");
      await page.command("Network.setExtraHTTPHeaders", {
        headers: { Host: `${work.world.denied}:${work.port}` },
      });
      await page.goto(work.serve("/headed", {}));
    },
    {
      reachesPlain: {
        because:
          "Chromium dials the host of the URL; only a proxy that believed the header would be led astray",
      },
    },
  ),
  command("Network.setExtraHTTPHeaders with the Host of an allowed one", async (work) => {
    const page = await work.open();
    await page.command("Network.enable");
    await page.command("Network.setExtraHTTPHeaders", {
      headers: { Host: `${work.site.host}:${work.site.port}` },
    });
    await page.goto(work.url());
  }),
  command("Security.setIgnoreCertificateErrors before a request over TLS", async (work) => {
    const page = await work.open();
    await page.command("Security.setIgnoreCertificateErrors", { ignore: true });
    await page.goto(work.url({ scheme: "https" }));
  }),
  command(
    "Target.setRemoteLocations",
    async (work) => {
      await work.cdp.send("Target.setDiscoverTargets", { discover: true });
      await work.cdp.send("Target.setRemoteLocations", {
        locations: [{ host: work.world.denied, port: work.port }],
      });
      await (await work.open()).evaluate("await soon(new Promise(() => {}), 2000)");
    },
    { leavesProxy: true },
  ),
  command(
    "Target.setRemoteLocations of a page",
    async (work) => {
      const page = await work.open();
      await page.command("Target.setRemoteLocations", {
        locations: [{ host: work.world.denied, port: work.port }],
      });
      await page.evaluate("await soon(new Promise(() => {}), 2000)");
    },
    { leavesProxy: true },
  ),
  command(
    "Cast.enable looks around in the network",
    async (work) => {
      const before = (await work.world.countPackets?.()) ?? 0;
      await (await work.open()).command("Cast.enable");
      await work.open();
      const sent = async (): Promise<number> => ((await work.world.countPackets?.()) ?? 0) - before;
      if (await work.shows(async () => (await sent()) > 0))
        work.saw(`${await sent()} packets left the machine`);
    },
    { isAlone: true, isLast: true, leavesProxy: true, needs: ["chromium", "privileged-cdp"] },
  ),
  command("Tethering.bind opens a port of the node", async (work) => {
    const { port } = await freePort();
    const { error } = await work.cdp.send("Tethering.bind", { port });
    if (error === undefined && (await isListening(port))) work.saw(`somebody listens on ${port}`);
  }),
  command("Network.emulateNetworkConditions off and on", async (work) => {
    const page = await work.open();
    await page.command("Network.enable");
    for (const offline of [true, false])
      await page.command("Network.emulateNetworkConditions", {
        offline,
        latency: 0,
        downloadThroughput: -1,
        uploadThroughput: -1,
      });
    await page.goto(work.url());
  }),
];

/** Commands that answer a page's requests, make requests themselves, or change how they are made. */
export const networkCommands: readonly Attempt[] = [...fetches, ...network];
