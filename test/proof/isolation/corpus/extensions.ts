import { packedFiles } from "../packed.js";
import type { ClientAttempt, Work } from "./attempt.js";
import { extensionCalls } from "./extension-calls.js";
import { extension, filesOf, tryIt } from "./extension.js";

/** Saves each file as a download, gives the places where they lie. */
const save = `await Promise.all(files.map((url, at) => chrome.downloads.download({ url, filename: "got-" + at }).catch(String)));
  // One that is called dangerous waits for somebody to accept it.
  const isUnderWay = ({ danger }) => danger === "safe" || danger === "accepted";
  await once([chrome.downloads.onChanged, chrome.downloads.onErased], async () => !(await chrome.downloads.search({ state: "in_progress" })).some(isUnderWay));
  return (await chrome.downloads.search({})).map(({ filename }) => filename);`;
const readDownloads = async (work: Work): Promise<unknown> => {
  const told = work.site.said(`/${work.nonce}/said`).join(" ");
  return await work.readFiles([...new Set([...told.matchAll(/"(\/[^"]+)"/g)].map(([, path = ""]) => path))]);
};

const reading: readonly ClientAttempt[] = [
  extension(
    "downloads of files, read back by DOM.setFileInputFiles",
    { permissions: ["downloads"], worker: save },
    { after: readDownloads, isQuick: true },
  ),
  extension(
    "fetch by its worker",
    {
      permissions: ["tabs"],
      // Whether the first fetches get files is a race, which is over once a page of the extension has run
      // (Chromium 156, docs/chromium.md#extensions).
      worker: `const fetched = () => Promise.all(files.map((url) => soon(fetch(url).then((reply) => reply.text(), String))));
      const first = fetched(); await opened("page.html"); return await Promise.all([first, fetched()]);`,
      files: { "page.html": "<body>" },
    },
    { isQuick: true },
  ),
  extension(
    "files opened in tabs, read by scripting",
    {
      permissions: ["tabs", "scripting"],
      worker:
        "return await eachIn((tab) => chrome.scripting.executeScript({ target: { tabId: tab.id }, func: () => document.documentElement.outerHTML }));",
    },
    { isQuick: true },
  ),
  extension("files opened in tabs, taken by pageCapture", {
    permissions: ["tabs", "pageCapture"],
    worker: `return await eachIn((tab) => chrome.pageCapture.saveAsMHTML({ tabId: tab.id }).then((blob) => blob.text()).then((text) => text.replace(/=\\r?\\n/g, "")));`,
  }),
  extension("files opened in tabs, read by debugger", {
    permissions: ["tabs", "debugger"],
    worker: `return await eachIn(async ({ id: tabId }) => { await chrome.debugger.attach({ tabId }, "1.3");
      return await chrome.debugger.sendCommand({ tabId }, "Runtime.evaluate", { expression: "document.documentElement.outerHTML" }); });`,
  }),
  extension(
    "files opened in windows, seen by a content script",
    {
      permissions: ["tabs"],
      worker: "for (const url of few) await chrome.windows.create({ url }); await eachIn(() => {});",
      files: { "content.js": "chrome.runtime.sendMessage(document.documentElement.outerHTML);" },
      manifest: { content_scripts: [{ matches: ["file:///*", "<all_urls>"], js: ["content.js"] }] },
    },
    { after: (work) => work.untilFound(() => work.shown()) },
  ),
  extension(
    "frames of files in its own page",
    (work) => ({
      permissions: ["tabs"],
      worker: 'await opened("page.html");',
      files: {
        "page.html": work.targets
          .map(({ path }) => `<iframe src="file://${path}"></iframe><img src="file://${path}">`)
          .join(""),
      },
    }),
    {
      after: (work) => work.shown(),
      succeedsPlain: { because: "Chromium opens no file in a frame of an extension" },
    },
  ),
  extension(
    "XMLHttpRequest in its own page",
    {
      permissions: ["tabs"],
      worker:
        'const over = new Promise((resolve) => chrome.runtime.onMessage.addListener(resolve)); await opened("page.html"); await soon(over);',
      files: {
        "page.html": `<body><script src="page.js"></script>`,
        "page.js":
          "Promise.all(FILES.map((url) => new Promise((resolve) => { const asked = new XMLHttpRequest(); asked.onloadend = () => resolve(document.body.append(asked.responseText)); asked.open('GET', url); asked.send(); }))).then(() => chrome.runtime.sendMessage('over'));",
      },
    },
    { after: (work) => work.shown() },
  ),
  extension("an offscreen document", {
    permissions: ["offscreen"],
    worker: `await chrome.offscreen.createDocument({ url: "page.html", reasons: ["DOM_PARSER"], justification: "x" }); return await soon(chrome.runtime.sendMessage("ask"));`,
    files: {
      "page.html": `<script src="page.js"></script><body>`,
      "page.js":
        "chrome.runtime.onMessage.addListener((_, __, answer) => { Promise.all(FILES.map((url) => fetch(url).then((reply) => reply.text(), String))).then(answer); return true; });",
    },
  }),
  extension(
    "a redirect to files by declarativeNetRequest",
    {
      permissions: ["declarativeNetRequest", "tabs"],
      worker: `await chrome.declarativeNetRequest.updateDynamicRules({ addRules: few.map((url, at) => ({ id: at + 1, action: { type: "redirect", redirect: { url } }, condition: { urlFilter: "/diverted-" + at, resourceTypes: ["main_frame"] } })) });`,
    },
    {
      after: async (work) => {
        for (const at of work.few.keys()) await work.open(`${work.site.origin}/diverted-${at}`);
        return await work.shown();
      },
      succeedsPlain: { because: "Chromium redirects nothing of the web to a file" },
    },
  ),
  extension(
    "a page of developer tools",
    {
      permissions: [],
      worker: "",
      files: {
        "devtools.html": `<script src="page.js"></script>`,
        "page.js":
          "FILES.map((url) => fetch(url).then((reply) => reply.text()).then((text) => chrome.runtime.sendMessage(text)));",
      },
      manifest: { devtools_page: "devtools.html" },
    },
    { succeedsPlain: { because: "nobody opens developer tools in it" } },
  ),
  extension(
    "userScripts in files",
    {
      permissions: ["userScripts", "tabs"],
      worker: `await chrome.userScripts?.register([{ id: "x", matches: ["file:///*"], js: [{ code: "document.title = document.documentElement.outerHTML" }] }]);
      await eachIn(() => {}); return (await chrome.tabs.query({})).map(({ title }) => title);`,
    },
    { succeedsPlain: { because: "userScripts wants developer mode" } },
  ),
  extension(
    "native messaging",
    {
      permissions: ["nativeMessaging"],
      worker: `return await soon(new Promise((resolve) => { const port = chrome.runtime.connectNative("x.x"); port.onDisconnect.addListener(() => resolve(chrome.runtime.lastError?.message)); }));`,
    },
    { succeedsPlain: { because: "no native host is installed" } },
  ),
  extension(
    "every permission that touches files, at once",
    {
      permissions: [
        "downloads",
        "downloads.open",
        "downloads.shelf",
        "tabs",
        "scripting",
        "pageCapture",
        "debugger",
        "nativeMessaging",
        "management",
        "fileSystem",
      ],
      worker: save,
    },
    { after: readDownloads },
  ),
];

const marks = { permissions: ["downloads"], worker: save };

/** Its outer manifest asks for nothing; the packed one that policy installs asks for everything. */
const packed: ClientAttempt = {
  name: "extension: packed, with more in it than its manifest says",
  vector: "extension",
  needsChromium: true,
  isAlone: true,
  isQuick: true,
  succeedsPlain: true,
  async run(work) {
    const inner = filesOf(work, {
      ...marks,
      worker: `${workerReads} ${save}`,
      permissions: ["downloads", "tabs", "scripting", "webRequest", "webRequestBlocking"],
    });
    const outer = {
      manifest_version: 3,
      name: work.nonce,
      version: "1",
      permissions: ["webRequest", "webRequestBlocking"],
    };
    const said = await tryIt(
      work,
      work.browser.isPlain ? inner : await packedFiles(inner, JSON.stringify(outer)),
    );
    const after = await work.renewed();
    return [said, await readDownloads(after), await after.shown()];
  },
};
const workerReads = `for (const url of files) await fetch(url).then((reply) => reply.text()).then(say, () => {});
  await say(await eachIn((tab) => chrome.scripting.executeScript({ target: { tabId: tab.id }, func: () => document.documentElement.outerHTML })));`;

export const extensions: readonly ClientAttempt[] = [...reading, ...extensionCalls, packed];
