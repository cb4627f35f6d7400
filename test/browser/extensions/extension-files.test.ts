import { chown, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Chromium, StartDirectories } from "../../../src/browser/chromium.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { launchChromium } from "../../support/browser/launch-chromium.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { launchSpec, openTestHost } from "../../support/browser/chromium-host.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { openSite } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";
import { nextRoom, writeInto } from "../../support/archive/extension-files.js";
import { unpackExtension } from "../../../src/archive/formats/unzip.js";
import { zipBytes } from "../../support/archive/zip-bytes.js";
import { packExtension, placeExtension } from "../../support/archive/packed-extension.js";

let host: BrowserHost;
const { launch, killAll } = makeLauncher(() => host);
beforeAll(async () => {
  host = await openTestHost();
});
afterEach(killAll);
afterAll(() => host.close());

const limitMs = 100_000;
const permissions = [
  "downloads",
  "tabs",
  "scripting",
  "pageCapture",
  "declarativeNetRequest",
  "offscreen",
  "storage",
  "management",
  "tabCapture",
  "desktopCapture",
  "fontSettings",
  "sidePanel",
  "webNavigation",
];
/**
 * Tries every means that an extension has of reaching a file, and returns what each gave. The manifest is not
 * narrowed: Chromium itself has to hold. Whether `first` gets a file that the extension may read depends on a
 * race in the worker's process. Once a page has run there, as it has before `fetch`, the race is over
 * (Chromium 156, docs/chromium.md#extensions).
 */
const worker = (page: string): string => `
const url = "file:///etc/passwd";
const said = (work) => work.then((given) => "got " + String(given).slice(0, 40), (error) => "refused: " + error);
const first = said(fetch(url).then((answer) => answer.text()));
const settled = async (id) => {
  for (;;) {
    const [{ state, error }] = await chrome.downloads.search({ id });
    if (state === "interrupted") throw new Error(error);
    if (state === "complete") return state;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
self.tries = async () => ({
  isAllowed: String(await chrome.extension.isAllowedFileSchemeAccess()),
  first: await first,
  offscreen: await said(chrome.offscreen.createDocument({ url: "${page}", reasons: ["DOM_PARSER"], justification: "a test" })
    .then(() => chrome.runtime.sendMessage("read")).then((answer) => { if (answer.startsWith("refused")) throw new Error(answer); return answer; })),
  fetch: await said(fetch(url).then((answer) => answer.text())),
  download: await said(chrome.downloads.download({ url }).then(settled)),
  upwards: await said(chrome.downloads.download({ url: "data:text/plain,hello", filename: "../outside.txt" }).then(settled)),
  absolute: await said(chrome.downloads.download({ url: "data:text/plain,hello", filename: "/tmp/outside.txt" }).then(settled)),
  tab: await said(chrome.tabs.create({ url })),
  script: await said(chrome.scripting.registerContentScripts([{ id: "files", matches: ["file:///*"], js: ["content.js"] }])
    .then(() => chrome.tabs.query({ url: "file:///*" })).then((tabs) => { if (tabs.length === 0) throw new Error("no page of a file"); return "a tab"; })),
  redirect: await said(chrome.declarativeNetRequest.updateDynamicRules({ addRules: [{ id: 1, action: { type: "redirect", redirect: { url } }, condition: { urlFilter: "redirected.test" } }] })
    .then(() => fetch("http://redirected.test/")).then((answer) => answer.text())),
});`;
const page = `<!doctype html><script src="page.js"></script>`;
const pageScript = `chrome.runtime.onMessage.addListener((_, __, answer) => {
  const asked = new XMLHttpRequest();
  asked.onload = () => answer("got " + asked.responseText.slice(0, 40));
  asked.onerror = () => answer("refused by XMLHttpRequest");
  asked.open("GET", "file:///etc/passwd");
  asked.send();
  return true;
});`;

const manifest = (more: object = {}) => ({
  permissions,
  host_permissions: ["<all_urls>", "file:///*"],
  content_scripts: [{ matches: ["<all_urls>", "file:///*"], js: ["content.js"] }],
  ...more,
});

async function writeReader(path: string, more: object = {}): Promise<{ name: string; path: string }> {
  const extension = await writeInto(path, "reader", manifest(more));
  await Promise.all(
    [
      ["worker.js", worker("page.html")],
      ["page.html", page],
      ["page.js", pageScript],
    ].map(([name = "", text = ""]) => writeFile(join(path, name), text)),
  );
  return extension;
}

async function triesOf(chromium: Chromium): Promise<Record<string, string>> {
  const client = new PipeClient(chromium);
  const session = await until("its worker", async () => {
    const [found] = await client.targets("service_worker");
    return found && (await client.attach(found.targetId));
  });
  return (await until("its tries", () =>
    client.evaluate("self.tries()", session).catch(() => undefined),
  )) as Record<string, string>;
}

function expectNothing(tries: Record<string, string>): void {
  const { isAllowed, ...others } = tries;
  expect(isAllowed).toBe("false");
  expect(Object.entries(others).filter(([, given]) => !given.startsWith("refused"))).toEqual([]);
  expect(Object.keys(others)).toHaveLength(9);
}

describe.each(engines.filter(([, { engine }]) => engine === "chromium"))(
  "in %s, an extension reads no file of the host",
  (_, given) => {
    test.each([
      ["by its path", {}],
      ["by its key", { key: "bm90IGEga2V5" }],
    ])("launched, known %s", async (__, more) => {
      const chromium = await launch({
        ...given,
        fillWorkspace: async ({ directories }: StartDirectories) => [
          await writeReader(join(directories.extensions, "reader"), more),
        ],
      });
      expectNothing(await triesOf(chromium));
    });

    test("given to it while it runs, and after its restart", async () => {
      const spec = launchSpec(given);
      const chromium = await launchChromium(spec, host);
      expect(await chromium.load([await writeReader(nextRoom(chromium))], limitMs)).toEqual({
        kind: "loaded",
      });
      expectNothing(await triesOf(chromium));
      const keptWorkspace = await chromium.stopAndKeep(limitMs);
      const again = await launchChromium(
        { ...spec, fillWorkspace: async () => keptWorkspace.extensions },
        host,
        { adopt: keptWorkspace },
      );
      expectNothing(await triesOf(again));
      await again.close(limitMs);
    });
  },
);

test("an extension whose manifest hides its key from who reads no comments has no access to files either, from its first run on", async () => {
  const site = await openSite();
  const hidden = {
    manifest_version: 3,
    name: "hidden",
    version: "1",
    key: "bm90IGEga2V5",
    permissions: ["downloads"],
    host_permissions: [`${site.origin}/*`],
    background: { service_worker: "worker.js" },
  };
  const spelled = `/* hidden */ ${JSON.stringify(hidden).replace('"key"', '"\\u006bey"')}`;
  // Nobody may attach to it before its first run.
  const telling = `chrome.extension.isAllowedFileSchemeAccess().then((isAllowed) => fetch("${site.origin}/told?" + isAllowed));`;
  const archive = join(host.scratchDirectory, "hidden.zip");
  await writeFile(
    archive,
    zipBytes([
      { name: "manifest.json", content: spelled },
      { name: "worker.js", content: telling },
    ]),
  );
  const unpackInto = async (path: string) => {
    await unpackExtension(archive, path, { maxFiles: 10, maxUnpackedBytes: 2 ** 20 });
    return { name: "hidden", path };
  };
  const running = await launch({ engine: "chromium" });
  // Its id by its key is not among those of which the browser knew at its start.
  const loading = await running.load([await unpackInto(nextRoom(running))], limitMs);
  expect({ loading, told: site.requests }).toEqual({
    loading: { kind: "needs-restart", why: expect.any(String) },
    told: [],
  });
  await launch({
    engine: "chromium",
    fillWorkspace: async ({ directories }: StartDirectories) => [
      await unpackInto(join(directories.extensions, "hidden")),
    ],
  });
  expect(
    await until("what it says", async () => site.requests.find((each) => each.startsWith("/told?"))),
  ).toBe("/told?false");
  await Promise.all([rm(archive), site.close()]);
});

test("one that was uninstalled may not be loaded again where it was: Chromium would let it read files", async () => {
  const chromium = await launch({ engine: "chromium" });
  const reader = await writeReader(nextRoom(chromium));
  expect(await chromium.load([reader], limitMs)).toEqual({ kind: "loaded" });
  const client = new PipeClient(chromium);
  const {
    extensions: [loaded],
  } = (await client.send("Extensions.getExtensions")) as { extensions: { id: string }[] };
  await client.send("Extensions.uninstall", { id: loaded?.id });
  expect(await chromium.load([{ ...reader, name: "again" }], limitMs).catch(String)).not.toEqual({
    kind: "loaded",
  });
});

test("a profile that allows an extension its files does not", async () => {
  const fillWorkspace = async ({ directories, uid }: StartDirectories) => {
    const reader = await writeReader(join(directories.extensions, "reader"), { key: "bm90IGEga2V5" });
    const inner = join(directories.profile, "Default");
    await mkdir(inner);
    const settings = { onpmaijhbjmakagblomaikpkndnoknee: { newAllowFileAccess: true } };
    for (const name of ["Preferences", "Secure Preferences"])
      await writeFile(join(inner, name), JSON.stringify({ extensions: { settings } }), { mode: 0o644 });
    if (uid !== null)
      for (const path of [inner, join(inner, "Preferences"), join(inner, "Secure Preferences")])
        await chown(path, uid, uid);
    return [reader];
  };
  expectNothing(await triesOf(await launch({ engine: "chromium", fillWorkspace })));
});

test("the control: with its access as Chromium gives it, the same extension reads and downloads what it likes", async () => {
  const chromium = await launch({ engine: "chromium" });
  // A directory of which the browser was not told, loaded past what keeps it.
  const reader = await writeReader(join(chromium.directories.extensions, "unknown"));
  await new PipeClient(chromium).send("Extensions.loadUnpacked", { path: reader.path });
  const tries = await triesOf(chromium);
  expect(tries).toMatchObject({
    isAllowed: "true",
    offscreen: expect.stringMatching(/^got got \w+:x:/),
    fetch: expect.stringMatching(/^got \w+:x:/),
    download: "got complete",
  });
});

test("a packed one that policy installs reads none either, whatever its own manifest says", async () => {
  const site = await openSite();
  // Nobody may attach to it.
  const telling = `${worker("content.js")}; tries().then((given) => fetch("${site.origin}/told?" + encodeURIComponent(JSON.stringify(given))));`;
  const asking = {
    permissions: ["webRequest", "webRequestBlocking", ...permissions],
    host_permissions: ["<all_urls>", "file:///*"],
  };
  const { path, remove } = await packExtension({
    chromium: host.executables.chromium ?? "",
    manifest: asking,
    worker: telling,
  });
  await launch({
    engine: "chromium",
    fillWorkspace: async ({ directories }: StartDirectories) => [
      await placeExtension(directories.extensions, "packed", path),
    ],
  });
  const told = await until("what it says", async () =>
    site.requests.find((each) => each.startsWith("/told?")),
  );
  expectNothing(JSON.parse(decodeURIComponent(told.slice("/told?".length))) as Record<string, string>);
  await Promise.all([remove(), site.close()]);
});
