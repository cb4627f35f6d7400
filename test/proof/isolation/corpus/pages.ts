import type { ClientAttempt, Work } from "./attempt.js";

const urlsOf = ({ targets }: Work): string[] => targets.map(({ path }) => `file://${path}`);
/** A script for each URL at once, each given `url`; what they return comes back. */
const forEach = (work: Work, script: string): string =>
  `const got = await Promise.all(${JSON.stringify(urlsOf(work))}.map((url) => soon((async () => { ${script} })().catch(String), 1500))); return got;`;

const chromiumRefuses = { because: "Chromium opens no file: URL for a page of the web" };

/** A script in a page of the allowed site. */
const inSite = (name: string, script: string, other: Partial<ClientAttempt> = {}): ClientAttempt => ({
  name,
  vector: "page",
  succeedsPlain: chromiumRefuses,
  ...other,
  run: async (work) => await (await work.open()).evaluate(forEach(work, script)),
});

/** A document that the allowed site serves, which shows what it may. */
const inDocument = (
  name: string,
  document: (url: string) => string,
  other: Partial<ClientAttempt> = {},
): ClientAttempt => ({
  name,
  vector: "page",
  succeedsPlain: chromiumRefuses,
  ...other,
  async run(work) {
    const body = `<!doctype html><body>${urlsOf(work).map(document).join("")}`;
    const page = await work.open(work.serve("/document", { body }));
    return await page.evaluate(`const texts = [...document.querySelectorAll("*")].map((each) => each.contentDocument?.body?.innerText ?? each.sheet?.cssRules?.[0]?.cssText ?? "");
      await soon(new Promise(() => {}), 200); return [document.body.innerText, ...texts];`);
  },
});

/**
 * The same from a page that is itself a file: one that the holder has uploaded, or the browser has
 * downloaded.
 */
const inOwnFile = (name: string, script: string, other: Partial<ClientAttempt> = {}): ClientAttempt => ({
  name,
  vector: "page",
  succeedsPlain: { because: "Chromium keeps file: URLs apart from each other" },
  ...other,
  async run(work) {
    const page = await work.open();
    await work.cdp.send("Browser.setDownloadBehavior", {
      behavior: "allow",
      downloadPath: `${work.browser.root}/Downloads`,
    });
    const file = `${work.nonce}.html`;
    await page.evaluate(
      `Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob(["<body>own"], { type: "text/html" })), download: "${file}" }).click(); await soon(new Promise(() => {}), 500);`,
    );
    await page.goto(`file://${work.browser.root}/Downloads/${file}`);
    return await page.evaluate(forEach(work, script));
  },
});

const reading: readonly ClientAttempt[] = [
  inSite("fetch", "return await (await fetch(url)).text();"),
  inSite(
    "XMLHttpRequest",
    "return await new Promise((resolve) => { const asked = new XMLHttpRequest(); asked.onloadend = () => resolve(asked.responseText); asked.open('GET', url); asked.send(); });",
  ),
  inSite("import", "return Object.values(await import(url));"),
  inSite(
    "Worker and importScripts",
    "const code = `try { importScripts(${JSON.stringify(url)}); postMessage('in'); } catch (error) { postMessage(String(error)); }`; const worker = new Worker(URL.createObjectURL(new Blob([code]))); return await new Promise((resolve) => (worker.onmessage = ({ data }) => resolve(data)));",
  ),
  inSite(
    "Worker of a file",
    "const worker = new Worker(url); return await new Promise((resolve) => (worker.onmessage = worker.onerror = resolve)).then(String);",
  ),
  inSite(
    "EventSource",
    "const source = new EventSource(url); return await new Promise((resolve) => { source.onmessage = ({ data }) => resolve(data); source.onerror = resolve; }).then(String);",
  ),
  inSite(
    "window.open",
    "const opened = window.open(url); await soon(new Promise(() => {}), 300); return opened?.document?.body?.innerText;",
    { isQuick: true },
  ),
  inSite("location", "location.href = url; await soon(new Promise(() => {}), 300);"),
  inSite(
    "form that is sent",
    "const form = document.createElement('form'); form.action = url; form.target = '_blank'; document.body.append(form); form.submit(); await soon(new Promise(() => {}), 300);",
  ),
  inSite(
    "link that is clicked",
    "Object.assign(document.createElement('a'), { href: url, target: '_blank' }).click(); await soon(new Promise(() => {}), 300);",
  ),
  inSite(
    "link that is downloaded",
    "Object.assign(document.createElement('a'), { href: url, download: 'got.txt' }).click(); await soon(new Promise(() => {}), 300);",
  ),
  inSite(
    "file system URL",
    "return await new Promise((resolve, reject) => webkitResolveLocalFileSystemURL(`filesystem:${url}`, (entry) => entry.file((file) => file.text().then(resolve)), reject));",
  ),
  inDocument("frames", (url) => `<iframe src="${url}"></iframe>`, { isQuick: true }),
  inDocument("images", (url) => `<img src="${url}">`),
  inDocument("embedded objects", (url) => `<object data="${url}"></object><embed src="${url}">`),
  inDocument(
    "style sheets",
    (url) =>
      `<link rel="stylesheet" href="${url}"><style>@import "${url}"; body { background: url("${url}") }</style>`,
  ),
  inDocument("scripts", (url) => `<script src="${url}"></script>`),
  inDocument(
    "media and tracks",
    (url) => `<video src="${url}" controls><track src="${url}" default></video>`,
  ),
  inDocument("SVG uses", (url) => `<svg><use href="${url}#x"/><image href="${url}"/></svg>`),
  inDocument("frames of sources", (url) => `<iframe src="view-source:${url}"></iframe>`),
  inDocument(
    "meta refresh in frames",
    (url) => `<iframe srcdoc="<meta http-equiv=refresh content='0;url=${url}'>"></iframe>`,
  ),
  inDocument(
    "portals, fenced frames and prefetches",
    (url) =>
      `<fencedframe src="${url}"></fencedframe><link rel="prefetch" href="${url}"><link rel="preload" as="fetch" href="${url}">`,
  ),
  {
    name: "XML with outside entities and style sheets",
    vector: "page",
    succeedsPlain: chromiumRefuses,
    async run(work) {
      const [url = ""] = urlsOf(work);
      const body = `<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="${url}"?><!DOCTYPE x [<!ENTITY e SYSTEM "${url}">]><x>&e;</x>`;
      await work.open(work.serve("/entities.xml", { body, headers: { "content-type": "application/xml" } }));
      return await work.shown();
    },
  },
  {
    name: "redirect to a file",
    vector: "page",
    succeedsPlain: chromiumRefuses,
    async run(work) {
      for (const [at, location] of work.few.map(({ path }) => `file://${path}`).entries())
        await work.open(work.serve(`/to-${at}`, { status: 302, headers: { location } }));
      return await work.shown();
    },
  },
  inOwnFile("from a downloaded page: fetch", "return await (await fetch(url)).text();"),
  inOwnFile(
    "from a downloaded page: frames",
    "await put('iframe', { src: url }); return document.querySelector('iframe:last-of-type').contentDocument?.body?.innerText;",
  ),
  inOwnFile(
    "from a downloaded page: listings of directories",
    "const opened = window.open(url.slice(0, url.lastIndexOf('/') + 1)); await soon(new Promise(() => {}), 300); return opened?.document?.body?.innerText;",
  ),
];

export const pages: readonly ClientAttempt[] = reading;
