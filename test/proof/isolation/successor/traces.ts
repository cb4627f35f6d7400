import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../../../support/browser/chromium-until.js";
import { Page } from "../../egress/corpus/page.js";
import { certificates } from "./certificates.js";
import { settings } from "./settings.js";
import { type Holder, inPage, type Trace } from "./trace.js";

const stored: readonly Trace[] = [
  inPage("a cookie", `document.cookie = "held=1; max-age=9999"`, "document.cookie"),
  inPage("localStorage", `localStorage.held = 1`, "localStorage.held"),
  inPage(
    "a database",
    `const opened = indexedDB.open("held", 1); await soon(new Promise((resolve) => (opened.onsuccess = resolve))); opened.result.close();`,
    "(await indexedDB.databases()).length",
  ),
  inPage(
    "CacheStorage",
    `await (await caches.open("held")).put("/held", new Response("held"))`,
    "(await caches.keys()).length",
  ),
  inPage(
    "a file of the origin's own",
    `await (await navigator.storage.getDirectory()).getFileHandle("held", { create: true })`,
    "(await Array.fromAsync((await navigator.storage.getDirectory()).keys())).length",
  ),
  inPage(
    "a storage bucket",
    `await navigator.storageBuckets.open("held")`,
    "(await navigator.storageBuckets.keys()).length",
  ),
  inPage(
    "a service worker",
    `await navigator.serviceWorker.register("/sw.js"); await soon(navigator.serviceWorker.ready)`,
    "(await navigator.serviceWorker.getRegistrations()).length",
  ),
  {
    name: "the HTTP cache",
    succeedsPlain: true,
    leave: (holder) => holder.evaluate(`await (await fetch("/cached")).text()`),
    async find(holder) {
      const before = holder.site.countOf("/cached");
      await holder.evaluate(`await (await fetch("/cached")).text()`);
      return holder.site.countOf("/cached") === before;
    },
  },
];

/** Pages that go on, and what is shared by all pages of an origin. */
const running: readonly Trace[] = [
  {
    name: "a page, and its name",
    succeedsPlain: true,
    leave: async ({ open }) => (await open("/left")).evaluate(`window.name = "held"`),
    find: async ({ cdp }) => (await targetsOf(cdp)).some(({ url }) => url.endsWith("/left")),
  },
  {
    name: "a page with a worklet",
    succeedsPlain: true,
    leave: async ({ open }) =>
      (await open("/worklet")).evaluate(
        `globalThis.held = new OfflineAudioContext(1, 9, 44100); await held.audioWorklet.addModule("/worklet.js")`,
      ),
    find: async ({ cdp }) => (await targetsOf(cdp)).some(({ url }) => url.endsWith("/worklet")),
  },
  {
    name: "a shared worker",
    succeedsPlain: true,
    leave: async ({ open }) =>
      (await open()).evaluate(`globalThis.held = ${sharedWorker}; ${asked("leave")}`),
    find: (holder) => holder.evaluate(`const held = ${sharedWorker}; return ${asked("look")}`),
  },
  {
    name: "a page that answers others of its origin",
    succeedsPlain: true,
    leave: async ({ open }) =>
      (await open()).evaluate(
        `globalThis.held = new BroadcastChannel("held"); held.onmessage = ({ data }) => data === "who?" && held.postMessage("held")`,
      ),
    find: (holder) =>
      holder.evaluate(
        `const channel = new BroadcastChannel("held"); const answer = new Promise((resolve) => (channel.onmessage = resolve)); channel.postMessage("who?"); return await soon(answer, 500) !== undefined`,
      ),
  },
  {
    name: "a lock of an origin",
    succeedsPlain: true,
    leave: async ({ open }) =>
      (await open()).evaluate(
        `void navigator.locks.request("held", () => new Promise(() => {})); await soon(new Promise(() => {}), 100)`,
      ),
    find: (holder) => holder.evaluate("return (await navigator.locks.query()).held.length"),
  },
  {
    name: "a context of the browser",
    succeedsPlain: true,
    async leave({ cdp, site }) {
      const { result } = await cdp.send("Target.createBrowserContext");
      await Page.open(cdp, `${site.origin}/context`, String(result?.["browserContextId"]));
    },
    find: async ({ cdp }) =>
      ((await cdp.send("Target.getBrowserContexts")).result?.["browserContextIds"] as unknown[] | undefined)
        ?.length,
  },
  {
    name: "a window's size",
    succeedsPlain: true,
    async leave({ cdp, open }) {
      const { target } = await open();
      const { result } = await cdp.send("Browser.getWindowForTarget", { targetId: target });
      await cdp.send("Browser.setWindowBounds", {
        windowId: result?.["windowId"],
        bounds: { width: 633, height: 477 },
      });
    },
    async find({ cdp }) {
      const pages = (await targetsOf(cdp)).filter(({ type }) => type === "page");
      const windows = await Promise.all(
        pages.map(({ targetId }) => cdp.send("Browser.getWindowForTarget", { targetId })),
      );
      return windows.some(
        ({ result }) => (result?.["bounds"] as { width?: number } | undefined)?.width === 633,
      );
    },
  },
];

const sharedWorker = `new SharedWorker("/shared.js")`;
const asked = (text: string): string =>
  `await soon(new Promise((resolve) => { held.port.onmessage = ({ data }) => resolve(data); held.port.postMessage("${text}"); }), 1000)`;

interface Info {
  readonly targetId: string;
  readonly type: string;
  readonly url: string;
}
async function targetsOf(cdp: Holder["cdp"]): Promise<readonly Info[]> {
  return ((await cdp.send("Target.getTargets")).result?.["targetInfos"] ?? []) as Info[];
}

const admitted = (what: string): Pick<Trace, "isAdmitted"> => ({
  isAdmitted: `${what}: docs/api.md, Reuse, says that \`state\` is no isolation between strangers`,
});
const stateOf = (name: string): string =>
  `(await navigator.permissions.query({ name: "${name}" })).state === "granted"`;

/** What the browser keeps for no page. */
const kept: readonly Trace[] = [
  {
    name: "Browser.grantPermissions",
    succeedsPlain: { because: "Chromium takes back what a client's session has granted" },
    leave: ({ cdp, site: { origin } }) =>
      cdp.send("Browser.grantPermissions", { origin, permissions: ["geolocation"] }),
    find: (holder) => holder.evaluate(`return ${stateOf("geolocation")}`),
  },
  {
    name: "Browser.setPermission",
    succeedsPlain: { because: "Chromium takes back what a client's session has granted" },
    leave: ({ cdp, site: { origin } }) =>
      cdp.send("Browser.setPermission", { origin, permission: { name: "camera" }, setting: "granted" }),
    find: (holder) => holder.evaluate(`return ${stateOf("camera")}`),
  },
  {
    name: "devices that a page was given",
    succeedsPlain: { because: "no machine of this proof has any, and nobody answers a chooser" },
    leave: async () => {},
    find: (holder) =>
      holder.evaluate(
        `const lists = await Promise.all(["usb", "hid", "serial"].map(async (name) => await (name === "serial" ? navigator.serial?.getPorts() : navigator[name]?.getDevices()) ?? [])); return lists.flat().length`,
      ),
  },
  {
    name: "Bluetooth that is simulated",
    succeedsPlain: { because: "what a CDP session has set goes with its client" },
    leave: async ({ open }) =>
      (await open()).command("BluetoothEmulation.enable", { state: "powered-on", leSupported: true }),
    find: (holder) =>
      holder.evaluate("return await soon(navigator.bluetooth?.getAvailability() ?? false, 1000)"),
  },
  {
    name: "the clipboard",
    succeedsPlain: true,
    leave: (holder) =>
      withClipboard(holder, `await navigator.clipboard.writeText(${JSON.stringify(holder.nonce)})`),
    find: async (holder) =>
      String(await withClipboard(holder, "return await soon(navigator.clipboard.readText())")).includes(
        holder.nonce,
      ),
  },
  {
    name: "the password of a site",
    succeedsPlain: true,
    ...admitted("HTTP authentication is kept"),
    leave: async ({ open, site }) => (await open()).goto(`http://held:held@${site.host}/auth`),
    find: (holder) => holder.evaluate(`return (await soon(fetch("/auth")))?.status === 200`),
  },
  {
    name: "a connection to a site",
    succeedsPlain: { because: "it may have ended meanwhile" },
    leave: (holder) => holder.evaluate(`await (await fetch("/socket")).text()`),
    find: (holder) => holder.evaluate(`return (await (await fetch("/socket")).text()) === "known"`),
  },
  {
    name: "a download",
    succeedsPlain: true,
    async leave({ open, root }) {
      await (await open()).evaluate(`location.href = "/file"`);
      await until("the download", async () => (await downloadsIn(root)).includes("kept.txt"));
    },
    find: async ({ root }) => (await downloadsIn(root)).length,
  },
  {
    name: "a download that is under way",
    isReplaced: true,
    succeedsPlain: true,
    async leave({ open, site }) {
      const script = `const link = document.createElement("a"); [link.href, link.download] = ["/slow-file", ""]; document.body.append(link); link.click()`;
      await (await open()).evaluate(script);
      await until("the download", () => site.isSending());
    },
    find: async ({ site }) => site.isSending(),
  },
  {
    name: "how downloads are treated",
    succeedsPlain: { because: "Chromium takes back what a client's session has set" },
    leave: ({ cdp }) => cdp.send("Browser.setDownloadBehavior", { behavior: "deny" }),
    async find({ open, root }) {
      await (await open()).evaluate(`location.href = "/file?again"`);
      return await until("the download", async () => (await downloadsIn(root)).length > 0, 3000).then(
        () => false,
        () => true,
      );
    },
  },
  {
    name: "tracing that is under way",
    succeedsPlain: { because: "a trace ends with its client" },
    leave: ({ cdp }) => cdp.send("Tracing.start", { transferMode: "ReturnAsStream" }),
    find: async ({ cdp }) =>
      (await cdp.send("Tracing.start", { transferMode: "ReturnAsStream" })).error !== undefined,
  },
  {
    name: "an extension",
    isReplaced: true,
    needsChromium: true,
    succeedsPlain: true,
    leave: ({ extend, nonce }) =>
      extend({ "manifest.json": JSON.stringify({ manifest_version: 3, name: nonce, version: "1" }) }),
    find: async ({ cdp, nonce }) =>
      JSON.stringify(await cdp.send("Extensions.getExtensions")).includes(nonce),
  },
  {
    name: "files of its directory that name what was visited",
    succeedsPlain: true,
    ...admitted("the history is kept"),
    async leave({ open, nonce, root }) {
      await open(`/${nonce}`);
      await until("a word of it on the disk", () => isNamedIn(root, nonce)).catch(() => {});
    },
    find: ({ root, nonce }) => isNamedIn(root, nonce),
  },
];

const downloadsIn = (root: string): Promise<string[]> => readdir(join(root, "Downloads")).catch(() => []);

async function isNamedIn(root: string, text: string): Promise<boolean> {
  const found = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const file of found.filter((each) => each.isFile())) {
    const content = await readFile(join(file.parentPath, file.name), "latin1").catch(() => "");
    if (content.includes(text)) return true;
  }
  return false;
}

async function withClipboard({ cdp, open, site: { origin } }: Holder, script: string): Promise<unknown> {
  const permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"];
  await cdp.send("Browser.grantPermissions", { origin, permissions });
  const page = await open();
  await page.command("Page.bringToFront");
  await page.command("Emulation.setFocusEmulationEnabled", { enabled: true });
  return await page.evaluate(script).catch(() => "");
}

/** What one holder of a pool's browser may leave to the next. */
export const traces: readonly Trace[] = [...stored, ...running, ...kept, ...certificates, ...settings];
