import type { Attempt, Work } from "./attempt.js";
import { bidi } from "./bidi.js";
import { command, frameOf, image, onPage } from "./command.js";
import { networkCommands } from "./network-commands.js";

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
    const expression = `fetch(${JSON.stringify(work.url())}, { mode: "no-cors" }).then(() => 1, () => 0)`;
    const session = String(attached.params?.sessionId);
    await work.cdp.send("Runtime.evaluate", { expression, awaitPromise: true }, session);
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
      const asked = (): readonly string[] =>
        work.namesAsked().filter((name) => name.includes("chrome-devtools-frontend"));
      await work.shows(() => asked().length > 0);
      for (const name of asked()) work.saw(`dns ${name}`);
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

export const commands: readonly Attempt[] = [...networkCommands, ...documents, ...tools, ...files, ...bidi];
