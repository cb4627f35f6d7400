import { connect, createServer, type AddressInfo } from "node:net";
import type { Attempt, Work } from "./attempt.js";
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

const frameOf = async (page: Page): Promise<string> =>
  ((await page.command("Page.getFrameTree")).result?.frameTree as { frame: { id: string } } | undefined)
    ?.frame.id ?? "";

const command = (name: string, run: Attempt["run"], other: Partial<Attempt> = {}): Attempt => ({
  name: `command: ${name}`,
  needs: ["privileged-cdp"],
  reachesPlain: true,
  run,
  ...other,
});

interface Asked {
  readonly method: string;
  params(work: Work, page: Page): Promise<object> | object;
}

const onPage = (name: string, { method, params }: Asked, other: Partial<Attempt> = {}): Attempt =>
  command(
    name,
    async (work) => {
      const page = await work.open();
      await page.command(method, await params(work, page));
      await page.evaluate("await soon(new Promise(() => {}), 300)");
    },
    other,
  );

const image = (url: string): string => `<img src="${url}" width=9 height=9>`;

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
      await page.command("Network.setRequestInterception", { patterns: [{ urlPattern: "*/intercepted" }] });
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
      await (await work.open()).evaluate("await soon(new Promise(() => {}), 2000)");
      const sent = ((await work.world.countPackets?.()) ?? 0) - before;
      if (sent > 0) work.saw(`${sent} packets left the machine`);
    },
    { isAlone: true, leavesProxy: true, needs: ["chromium", "privileged-cdp"] },
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

const documents: readonly Attempt[] = [
  onPage("Page.setDocumentContent", {
    method: "Page.setDocumentContent",
    params: async (work, page) => ({ frameId: await frameOf(page), html: image(work.url()) }),
  }),
  onPage(
    "Page.printToPDF with a remote image in its header",
    {
      method: "Page.printToPDF",
      params: (work) => ({
        displayHeaderFooter: true,
        headerTemplate: image(work.url()),
        footerTemplate: image(work.url()),
      }),
    },
    { reachesPlain: { because: "Chromium loads nothing for headers and footers" } },
  ),
  command("Page.printToPDF of a page with remote images", async (work) => {
    const page = await work.open(
      work.serve("/printed", {
        body: `<!doctype html><style>@media print { body { background: url(${work.url()}) } }</style>${image(work.url())}`,
      }),
    );
    await page.command("Page.printToPDF", { printBackground: true });
  }),
  command("Page.getAppManifest", async (work) => {
    const page = await work.open(
      work.serve("/installed", { body: `<!doctype html><link rel=manifest href="${work.url()}">` }),
    );
    await page.command("Page.getAppManifest");
  }),
  onPage(
    "PWA.install",
    {
      method: "PWA.install",
      params: (work) => ({ manifestId: work.url(), installUrlOrBundleUrl: work.url() }),
    },
    {
      needs: ["chromium", "privileged-cdp"],
      reachesPlain: { because: "Chromium 156 has it for headful browsers on a pipe alone" },
    },
  ),
  onPage("Page.addScriptToEvaluateOnNewDocument", {
    method: "Page.addScriptToEvaluateOnNewDocument",
    params: (work) => ({
      source: `fetch(${JSON.stringify(work.url())}, { mode: "no-cors" })`,
      runImmediately: true,
    }),
  }),
  command("Runtime.evaluate in a worker's session", async (work) => {
    const page = await work.open();
    await page.command("Target.setAutoAttach", {
      autoAttach: true,
      waitForDebuggerOnStart: false,
      flatten: true,
    });
    // A worker whose script does not run yet has nowhere to evaluate anything.
    await page.evaluate(`globalThis.held = new Worker(URL.createObjectURL(new Blob(["postMessage('runs')"])));
      await soon(new Promise((resolve) => { held.onmessage = resolve; }))`);
    const attached = await work.cdp.message(
      ({ method, sessionId }) => method === "Target.attachedToTarget" && sessionId === page.session,
    );
    await work.cdp.evaluate(
      `fetch(${JSON.stringify(work.url())}, { mode: "no-cors" }).then(() => 1, () => 0)`,
      String(attached.params?.sessionId),
    );
  }),
  command("download to the session's directory", async (work) => {
    const page = await work.open();
    await work.cdp.send("Browser.setDownloadBehavior", { behavior: "deny" });
    await page.goto(`${work.url()}.zip`);
  }),
];

const mapped = "sourceMappingURL";
/** Front ends of the developer tools fetch for themselves: their own code, and maps of sources. */
const tools: readonly Attempt[] = [
  command(
    "DevTools fetch their own front end",
    async (work) => {
      const page = await work.open();
      await page.goto(
        "devtools://devtools/remote/serve_file/@0123456789012345678901234567890123456789/inspector.html",
      );
      await (await work.open()).evaluate("await soon(new Promise(() => {}), 1000)");
      for (const name of work.namesAsked())
        if (name.includes("chrome-devtools-frontend")) work.saw(`dns ${name}`);
    },
    { needs: ["chromium", "privileged-cdp", "names"], isAlone: true },
  ),
  command(
    "DevTools fetch a map of sources",
    async (work) => {
      const page = await work.open(
        work.serve("/mapped", { body: `<!doctype html><script>1\n//# ${mapped}=${work.url()}\n</script>` }),
      );
      await work.cdp.send("Target.openDevTools", { targetId: page.target });
      await page.evaluate("await soon(new Promise(() => {}), 4000)");
    },
    { needs: ["chromium", "privileged-cdp"] },
  ),
  command(
    "Debugger.enable on a page with a denied map of sources",
    async (work) => {
      const page = await work.open();
      await page.command("Debugger.enable");
      await page.goto(
        work.serve("/mapped", { body: `<!doctype html><script>1\n//# ${mapped}=${work.url()}\n</script>` }),
      );
    },
    { reachesPlain: { because: "a front end would fetch it; a client of the protocol is only told" } },
  ),
];

const filed = async (work: Work): Promise<string> =>
  `file://${await work.upload({ "held.html": `<!doctype html>${image(work.url())}` })}/held.html`;

/** Files can hold pages, and pages reach further. */
const files: readonly Attempt[] = [
  command(
    "file: of the session's own with a denied image",
    async (work) => (await work.open()).goto(await filed(work)),
    { needs: ["privileged-cdp", "uploads"] },
  ),
  command(
    "file: of the session's own in a new tab",
    async (work) => work.cdp.send("Target.createTarget", { url: await filed(work) }),
    { needs: ["privileged-cdp", "uploads"] },
  ),
  command(
    "view-source: of a file",
    async (work) => (await work.open()).goto(`view-source:${await filed(work)}`),
    {
      needs: ["chromium", "privileged-cdp", "uploads"],
      reachesPlain: { because: "the source of a file is shown, not loaded" },
    },
  ),
];

export const commands: readonly Attempt[] = [...fetches, ...network, ...documents, ...tools, ...files];
