import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../../../support/browser/chromium-until.js";
import type { ClientAttempt, Work } from "./attempt.js";

const command = (
  name: string,
  run: ClientAttempt["run"],
  other: Partial<ClientAttempt> = {},
): ClientAttempt => ({ name, door: "CDP", succeedsPlain: true, ...other, run });

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

const reading: readonly ClientAttempt[] = [
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
      return await work.shown();
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
        `${work.ground.directory}/`,
        "/home/",
        "/root/",
      ]) {
        await page.goto(`file://${path}`);
        const text = String(await page.evaluate("return document.documentElement.outerHTML"));
        got.push(text);
        // The victims' directories and the bystander's socket are named for the proof.
        const foreign = /remuda-prove-[0-9a-f]{8}|bystander\.sock/.exec(text)?.[0];
        if (foreign !== undefined) work.saw(`${foreign} in ${path}`);
        if (path === "/proc/" && new RegExp(`>${work.ground.victims.pid}/?<`).test(text))
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
    return await page.evaluate("await soon(new Promise(() => {}), 500); return document.body.innerText;");
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
    return await page.evaluate(
      "await soon(new Promise(() => {}), 500); return document.documentElement.outerHTML",
    );
  }),
];

const isThere = (work: Work, path: string): boolean => existsSync(work.ground.seen(path));

/**
 * Saves a download under a name while the browser is told to put downloads into a directory of the ground.
 */
async function saveInto(
  work: Work,
  tell: (directory: string) => Promise<unknown>,
  name: string,
): Promise<void> {
  const directory = work.ground.directory;
  await tell(directory);
  const page = await work.open();
  await page.evaluate(
    `Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob(["mark"])), download: ${JSON.stringify(name)} }).click(); await soon(new Promise(() => {}), 800);`,
  );
  for (const file of [join(directory, name), join("/tmp", name)])
    if (isThere(work, file)) work.saw(`wrote ${file}`);
}

const writing: readonly ClientAttempt[] = [
  command(
    "Browser.setDownloadBehavior to a directory of the host",
    async (work) => {
      const name = `${work.nonce}-saved.txt`;
      await saveInto(
        work,
        (downloadPath) => work.cdp.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath }),
        name,
      );
    },
    { isQuick: true },
  ),
  command("Page.setDownloadBehavior to a directory of the host", async (work) => {
    const name = `${work.nonce}-saved.txt`;
    await saveInto(
      work,
      async (downloadPath) =>
        (await work.open()).command("Page.setDownloadBehavior", { behavior: "allow", downloadPath }),
      name,
    );
  }),
  command(
    "a download's name that climbs",
    async (work) => {
      const name = `../../../../../../../..${work.ground.directory}/${work.nonce}-climbed.txt`;
      await work.cdp.send("Browser.setDownloadBehavior", {
        behavior: "allow",
        downloadPath: `${work.browser.root}/Downloads`,
      });
      const url = work.serve("/climb", {
        body: "mark",
        headers: {
          "content-disposition": `attachment; filename="${name}"`,
          "content-type": "application/octet-stream",
        },
      });
      const page = await work.open();
      await page.command("Page.navigate", { url });
      await page.evaluate("await soon(new Promise(() => {}), 800);");
      if (isThere(work, join(work.ground.directory, `${work.nonce}-climbed.txt`)))
        work.saw("wrote out of its downloads");
    },
    { succeedsPlain: { because: "Chromium drops the directories of a download's name" } },
  ),
  command(
    "Extensions.loadUnpacked of a directory of the host",
    async (work) => {
      const path = join(work.ground.directory, `extension-${work.nonce}`);
      const file = work.ground.seen(path);
      await mkdir(file, { recursive: true });
      await writeFile(
        join(file, "manifest.json"),
        JSON.stringify({ manifest_version: 3, name: work.nonce, version: "1", description: "of the host" }),
      );
      const { result } = await work.cdp.send("Extensions.loadUnpacked", { path });
      if (result?.["id"] !== undefined) work.saw("loaded a directory of the host");
    },
    { needsChromium: true },
  ),
  command(
    "Extensions.loadUnpacked of the root directory",
    async (work) => {
      const { error, result } = await work.cdp.send("Extensions.loadUnpacked", { path: "/etc" });
      // Chromium says where it looked for the manifest only once it has looked.
      if (result !== undefined || /[Mm]anifest/.test(error?.message ?? "")) work.saw("looked into /etc");
    },
    { needsChromium: true },
  ),
];

const telling: readonly ClientAttempt[] = [
  command("Browser.getBrowserCommandLine and SystemInfo", async (work) => {
    const got = [
      await work.cdp.send("Browser.getBrowserCommandLine"),
      await work.cdp.send("SystemInfo.getInfo"),
      await work.cdp.send("SystemInfo.getProcessInfo"),
    ];
    const others = ((got[2]?.result?.["processInfo"] ?? []) as { id: number }[]).map(({ id }) => id);
    // In a process namespace of its own a browser has small numbers.
    if (others.includes(await work.browser.mainPid())) work.saw("process ids of the host");
    return got;
  }),
  command("Target.exposeDevToolsProtocol", async (work) => {
    const page = await work.open();
    const { error } = await work.cdp.send("Target.exposeDevToolsProtocol", {
      targetId: page.target,
      bindingName: "held",
    });
    if (error === undefined) work.saw("a page holds CDP, past the gate");
  }),
  command(
    "Browser.crash",
    async (work) => {
      const before = await work.browser.mainPid();
      void work.cdp.send("Browser.crash");
      await until("its end", async () => (await work.browser.mainPid().catch(() => 0)) !== before, 1500).then(
        () => work.saw("the browser crashed"),
        () => {},
      );
    },
    { isAlone: true },
  ),
];

export const commands: readonly ClientAttempt[] = [...reading, ...writing, ...telling];
