import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Chromium } from "../../../src/browser/chromium.js";
import type { Fingerprint } from "../../../src/browser/reset/fingerprint.js";
import type { PipeClient } from "./chromium-client.js";
import type { Site } from "./chromium-site.js";
import { until } from "./chromium-until.js";

/** A client at work: `first` is the page it has found open, `session` is on another one of the site. */
export interface Work {
  readonly chromium: Chromium;
  readonly client: PipeClient;
  readonly site: Site;
  readonly first: string;
  readonly session: string;
}

/** Something a holder may leave behind. */
export interface Dirt {
  readonly what: string;
  leave(work: Work): Promise<unknown>;
  /** Truthy where it is still there, as a client would notice. */
  find(work: Work): Promise<unknown>;
  /** The part of the comparison that shows it; undefined where it goes with its page and only there. */
  readonly shownIn?: keyof Fingerprint | "last origin";
  /** headless-shell has none. */
  readonly needsChromium?: true;
}

const script = (
  what: string,
  { leave, find, shownIn }: { leave: string; find: string; shownIn: Dirt["shownIn"] },
): Dirt => ({
  what,
  leave: ({ client, session }) => client.evaluate(`(async () => { ${leave} })()`, session),
  find: ({ client, session }) => client.evaluate(`(async () => ${find})()`, session),
  ...(shownIn && { shownIn }),
});

/** Does a request that was answered once with leave to keep it reach the server again? */
const cached = (what: string, path: string): Dirt => ({
  what,
  leave: ({ client, session }) =>
    client.evaluate(`fetch("${path}").then((answer) => answer.text())`, session),
  async find({ client, site, session }) {
    site.requests.length = 0;
    await client.evaluate(`fetch("${path}").then((answer) => answer.text())`, session);
    return !site.requests.includes(path);
  },
  shownIn: "stored",
});

/** Storage that a page of another site keeps in a frame of this one, apart from its own. */
const framed = `await new Promise((resolve) => {
  const frame = document.createElement("iframe");
  onmessage = () => resolve();
  frame.src = "http://localhost:" + location.port + "/framed";
  document.body.append(frame);
})`;

const stores: readonly Dirt[] = [
  script("a cookie", {
    leave: `document.cookie = "held=1; max-age=10000"`,
    find: "document.cookie",
    shownIn: "cookies",
  }),
  script("localStorage", {
    leave: `localStorage.setItem("held", "1")`,
    find: "localStorage.length",
    shownIn: "stored",
  }),
  script("sessionStorage", {
    leave: `sessionStorage.setItem("held", "1")`,
    find: "sessionStorage.length",
    shownIn: "stored",
  }),
  script("a database", {
    leave: `const opened = indexedDB.open("held", 1);
      await new Promise((resolve) => {
        opened.onupgradeneeded = () => opened.result.createObjectStore("store");
        opened.onsuccess = resolve;
      });
      opened.result.close();`,
    find: "(await indexedDB.databases()).length",
    shownIn: "stored",
  }),
  script("CacheStorage", {
    leave: `await (await caches.open("held")).put("/held", new Response("held"))`,
    find: "(await caches.keys()).length",
    shownIn: "stored",
  }),
  script("a service worker", {
    leave: `await navigator.serviceWorker.register("/sw.js"); await navigator.serviceWorker.ready`,
    find: "(await navigator.serviceWorker.getRegistrations()).length",
    shownIn: "stored",
  }),
  script("a file of the origin's own", {
    leave: `await (await navigator.storage.getDirectory()).getFileHandle("held", { create: true })`,
    find: "(await Array.fromAsync((await navigator.storage.getDirectory()).keys())).length",
    shownIn: "stored",
  }),
  {
    ...script("storage of a frame of another site", { leave: framed, find: "0", shownIn: "stored" }),
    async find({ client, session }) {
      return await client.evaluate(
        `new Promise((resolve) => {
        const frame = document.createElement("iframe");
        onmessage = ({ data }) => resolve(data.found);
        frame.src = "http://localhost:" + location.port + "/framed?look";
        document.body.append(frame);
      })`,
        session,
      );
    },
  },
  cached("the HTTP cache", "/cached"),
  cached("a redirect that may be kept", "/moved"),
];

const timeZone = "Pacific/Chatham";
const page: readonly Dirt[] = [
  {
    what: "an override of the time zone",
    leave: ({ client, session }) =>
      client.send("Emulation.setTimezoneOverride", { timezoneId: timeZone }, session),
    find: async ({ client, session }) =>
      (await client.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone", session)) === timeZone,
  },
  {
    what: "an override of the user agent",
    leave: ({ client, session }) =>
      client.send("Emulation.setUserAgentOverride", { userAgent: "held" }, session),
    find: async ({ client, session }) => (await client.evaluate("navigator.userAgent", session)) === "held",
  },
  {
    what: "an override of the screen's size",
    leave: ({ client, session }) =>
      client.send(
        "Emulation.setDeviceMetricsOverride",
        { width: 333, height: 444, deviceScaleFactor: 3, mobile: false },
        session,
      ),
    find: async ({ client, session }) => (await client.evaluate("innerWidth", session)) === 333,
  },
  {
    what: "a script for new documents",
    async leave({ client, site, session }) {
      await client.send("Page.enable", {}, session);
      await client.send(
        "Page.addScriptToEvaluateOnNewDocument",
        { source: "globalThis.held = true" },
        session,
      );
      await client.open(`${site.origin}/scripted`, session);
    },
    find: ({ client, session }) => client.evaluate("globalThis.held", session),
  },
];

const manifest = {
  manifest_version: 3,
  name: "held",
  version: "1",
  background: { service_worker: "worker.js" },
};

/** Its worker is still starting when the extension is uninstalled. */
async function loadExtension({ client, chromium: { directories } }: Work): Promise<void> {
  await writeFile(join(directories.uploads, "manifest.json"), JSON.stringify(manifest));
  await writeFile(
    join(directories.uploads, "worker.js"),
    "const until = Date.now() + 300; while (Date.now() < until);",
  );
  await client.send("Extensions.loadUnpacked", { path: directories.uploads });
}

/** A page reads and writes the clipboard once it may and has the focus. */
async function withClipboard({ client, site, session }: Work, expression: string): Promise<unknown> {
  // One by one: Browser.grantPermissions would take all others back.
  for (const name of ["clipboard-read", "clipboard-write"]) {
    const given = { origin: site.origin, permission: { name }, setting: "granted" };
    await client.send("Browser.setPermission", given);
  }
  await client.send("Page.bringToFront", {}, session);
  await client.send("Emulation.setFocusEmulationEnabled", { enabled: true }, session);
  return await client.evaluate(expression, session);
}

const browser: readonly Dirt[] = [
  {
    what: "the clipboard",
    leave: (work) => withClipboard(work, `navigator.clipboard.writeText("held")`),
    // Empty, it has nothing to read.
    find: (work) => withClipboard(work, `navigator.clipboard.readText().catch(() => "")`),
  },
  {
    what: "a permission",
    leave: ({ client, site }) =>
      client.send("Browser.grantPermissions", { origin: site.origin, permissions: ["geolocation"] }),
    find: async ({ client, session }) =>
      (await client.evaluate(
        "navigator.permissions.query({ name: 'geolocation' }).then(({ state }) => state)",
        session,
      )) === "granted",
    shownIn: "last origin",
  },
  {
    what: "a download",
    async leave({ client, site, session, chromium: { directories } }) {
      await client.send("Page.navigate", { url: `${site.origin}/file` }, session);
      await until("the download", async () => (await readdir(directories.downloads)).includes("kept.txt"));
    },
    find: async ({ chromium: { directories } }) => (await readdir(directories.downloads)).length,
    shownIn: "files",
  },
  {
    what: "an upload",
    leave: ({ chromium: { directories } }) => writeFile(join(directories.uploads, "upload.txt"), "given"),
    find: async ({ chromium: { directories } }) => (await readdir(directories.uploads)).length,
    shownIn: "files",
  },
  {
    what: "tabs",
    leave: ({ client, site }) =>
      Promise.all(
        [1, 2, 3, 4, 5].map((tab) => client.send("Target.createTarget", { url: `${site.origin}/${tab}` })),
      ),
    find: async ({ client }) => (await client.targets()).length > 3,
    shownIn: "targets",
  },
  {
    what: "a browser context",
    async leave({ client, site }) {
      const { browserContextId } = await client.send("Target.createBrowserContext");
      await client.send("Target.createTarget", { url: site.origin, browserContextId });
    },
    find: async ({ client }) =>
      ((await client.send("Target.getBrowserContexts")).browserContextIds as string[]).length,
    shownIn: "contexts",
  },
  {
    what: "an extension",
    leave: loadExtension,
    find: async ({ client }) =>
      ((await client.send("Extensions.getExtensions")).extensions as object[]).length,
    shownIn: "extensions",
    needsChromium: true,
  },
  {
    what: "a window elsewhere",
    async leave({ client, first }) {
      const { windowId } = await client.send("Browser.getWindowForTarget", { targetId: first });
      await client.send("Browser.setWindowBounds", {
        windowId,
        bounds: { left: 44, top: 33, width: 640, height: 480 },
      });
    },
    find: async ({ client, first }) => {
      const { bounds } = await client.send("Browser.getWindowForTarget", { targetId: first });
      return (bounds as { left: number }).left > 20;
    },
    shownIn: "window",
  },
];

/**
 * What docs/chromium.md#clearing-a-used-browser names and some more, in an order in which nothing undoes what
 * was left before.
 */
export const dirt: readonly Dirt[] = [...stores, ...page, ...browser];
