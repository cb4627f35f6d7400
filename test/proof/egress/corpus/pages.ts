import { type Attempt, inDocument, inPage } from "./attempt.js";

const redirect = (name: string, status: number, script: string): Attempt =>
  inPage(
    name,
    (work) =>
      `const from = ${JSON.stringify(work.serve("/redirect", { status, headers: { location: work.url() } }))}; ${script}`,
  );

const never = (because: string): Partial<Attempt> => ({ reachesPlain: { because } });

/** Ways to go somewhere. */
export const navigations: readonly Attempt[] = [
  { name: "plain navigation", reachesPlain: true, run: async (work) => (await work.open()).goto(work.url()) },
  {
    name: "new tab at once",
    reachesPlain: true,
    run: (work) => work.cdp.send("Target.createTarget", { url: work.url() }),
  },
  {
    name: "view-source: of a denied page",
    needs: ["chromium"],
    reachesPlain: true,
    run: async (work) => (await work.open()).goto(`view-source:${work.url()}`),
  },
  inPage("window.open", "window.open(url); await soon(new Promise(() => {}), 300)"),
  inPage("location of a script", "location = url; await soon(new Promise(() => {}), 300)"),
  inPage(
    "form that is posted",
    `const form = document.createElement("form"); form.method = "post"; form.action = url; document.body.append(form); form.submit(); await soon(new Promise(() => {}), 300)`,
  ),
  inPage(
    "link that is clicked",
    `const link = document.createElement("a"); link.href = url; document.body.append(link); link.click(); await soon(new Promise(() => {}), 300)`,
  ),
  inPage(
    "ping of a link",
    `const link = document.createElement("a"); link.href = location.origin + "/elsewhere#"; link.target = "_blank"; link.ping = url; document.body.append(link); link.click(); await soon(new Promise(() => {}), 500)`,
  ),
  inDocument("meta refresh", (url) => `<meta http-equiv=refresh content="0;url=${url}">`),
  {
    name: "Refresh header",
    reachesPlain: true,
    run: (work) => work.open(work.serve("/refresh", { headers: { refresh: `0;url=${work.url()}` } })),
  },
  {
    name: "redirect of a navigation (302)",
    reachesPlain: true,
    run: async (work) =>
      (await work.open()).goto(work.serve("/redirect", { status: 302, headers: { location: work.url() } })),
  },
  redirect(
    "redirect of fetch (307, posted)",
    307,
    `await soon(fetch(from, { method: "POST", mode: "no-cors", body: "held" })).catch(() => {})`,
  ),
  redirect("redirect of an image", 302, `await put("img", { src: from })`),
  redirect("redirect of a script", 302, `await put("script", { src: from })`),
  redirect("redirect of a frame", 302, `await put("iframe", { src: from })`),
  redirect(
    "redirect of an EventSource",
    307,
    `const source = new EventSource(from); await soon(new Promise((resolve) => (source.onerror = source.onopen = resolve)))`,
  ),
  redirect(
    "redirect of a download",
    302,
    `const link = document.createElement("a"); link.href = from; link.download = "held"; document.body.append(link); link.click(); await soon(new Promise(() => {}), 300)`,
  ),
];

const element = (what: string, tag: string, given: string): Attempt =>
  inPage(`subresource: ${what}`, `await put("${tag}", ${given})`);

/** What a document brings along. */
export const subresources: readonly Attempt[] = [
  element("image", "img", "{ src: url }"),
  element("image of a set", "img", `{ srcset: url + " 1x" }`),
  element("script", "script", "{ src: url }"),
  element("module script", "script", `{ src: url, type: "module" }`),
  element("style sheet", "link", `{ rel: "stylesheet", href: url }`),
  element("video", "video", `{ src: url, preload: "auto" }`),
  element("audio", "audio", `{ src: url, preload: "auto" }`),
  element("poster of a video", "video", "{ poster: url }"),
  element("embed", "embed", `{ src: url, type: "text/html" }`),
  element("object", "object", `{ data: url, type: "text/html" }`),
  element("input of type image", "input", `{ type: "image", src: url }`),
  element("embedded PDF", "embed", `{ src: url + ".pdf", type: "application/pdf" }`),
  element("PDF in a frame", "iframe", `{ src: url + ".pdf" }`),
  inPage(
    "subresource: background of a style",
    `document.body.style.background = "url(" + url + ")"; await soon(new Promise(() => {}), 300)`,
  ),
  inPage(
    "subresource: imported style sheet",
    `const style = document.createElement("style"); style.textContent = "@import url(" + url + ");"; document.head.append(style); await soon(new Promise((resolve) => (style.onload = style.onerror = resolve)))`,
  ),
  inPage("subresource: font", `await soon(new FontFace("held", "url(" + url + ")").load()).catch(() => {})`),
  inPage(
    "subresource: image of an SVG",
    `document.body.innerHTML = "<svg><image href='" + url + "' width=9 height=9 /></svg>"; await soon(new Promise(() => {}), 300)`,
  ),
  inPage(
    "subresource: text track",
    `const video = document.createElement("video"); const track = document.createElement("track"); video.crossOrigin = "anonymous"; track.src = url; track.default = true; video.append(track); document.body.append(video); track.track.mode = "showing"; await soon(new Promise((resolve) => (track.onload = track.onerror = resolve)))`,
  ),
  inPage("subresource: imported module", "await soon(import(url)).catch(() => {})"),
  inPage(
    "subresource: worklet",
    "await soon(new AudioContext().audioWorklet.addModule(url)).catch(() => {})",
  ),
  inDocument("frame", (url) => `<iframe src="${url}"></iframe>`),
  inDocument(
    "frame within a srcdoc frame",
    (url) => `<iframe srcdoc="<iframe src='${url}'></iframe>"></iframe>`,
  ),
  inDocument(
    "sandboxed frame",
    (url) =>
      `<iframe sandbox="allow-scripts" srcdoc="<script>fetch('${url}', { mode: 'no-cors' })</script>"></iframe>`,
  ),
  {
    name: "frame set",
    reachesPlain: true,
    run: (work) =>
      work.open(work.serve("/frames", { body: `<frameset><frame src="${work.url()}"></frameset>` })),
  },
  {
    name: "data: document with a denied image",
    reachesPlain: true,
    run: async (work) => (await work.open()).goto(`data:text/html,<img src="${work.url()}">`),
  },
  inPage(
    "blob: document with a denied image",
    `await put("iframe", { src: URL.createObjectURL(new Blob(["<img src='" + url + "'>"], { type: "text/html" })) }); await soon(new Promise(() => {}), 300)`,
  ),
  inPage(
    "javascript: URL",
    `await put("iframe", { src: "javascript:fetch('" + url + "', { mode: 'no-cors' })" })`,
  ),
];

/** Requests of scripts. */
export const requests: readonly Attempt[] = [
  inPage("fetch", `await soon(fetch(url, { mode: "no-cors" })).catch(() => {})`),
  inPage(
    "fetch that outlives its page",
    `fetch(url, { mode: "no-cors", keepalive: true }).catch(() => {}); location = "about:blank"`,
  ),
  inPage(
    "fetchLater",
    (work) =>
      `fetchLater(${JSON.stringify(work.url({ host: "127.0.0.1" }))}, { activateAfter: 0 }); await soon(new Promise(() => {}), 300)`,
  ),
  inPage(
    "XMLHttpRequest",
    `const request = new XMLHttpRequest(); request.open("GET", url); request.send(); await soon(new Promise((resolve) => (request.onloadend = resolve)))`,
  ),
  inPage("beacon", `navigator.sendBeacon(url, "held"); await soon(new Promise(() => {}), 300)`),
  inPage(
    "EventSource",
    "const source = new EventSource(url); await soon(new Promise((resolve) => (source.onerror = source.onopen = resolve)))",
  ),
  inPage(
    "WebSocket",
    `const socket = new WebSocket(url.replace("http", "ws")); await soon(new Promise((resolve) => (socket.onclose = resolve)))`,
  ),
  inPage(
    "WebSocket, encrypted",
    `const socket = new WebSocket(url.replace("http", "wss")); await soon(new Promise((resolve) => (socket.onclose = resolve)))`,
  ),
  inPage(
    "WebSocketStream",
    `await soon(new WebSocketStream(url.replace("http", "ws")).opened).catch(() => {})`,
    never("an experiment that Chromium 156 does not have on"),
  ),
  inPage(
    "request over TLS",
    `await soon(fetch(url.replace("http", "https"), { mode: "no-cors" })).catch(() => {})`,
  ),
  {
    name: "report of a content security policy",
    reachesPlain: true,
    run: async (work) => {
      const headers = { "content-security-policy": `img-src 'none'; report-uri ${work.url()}` };
      await work.open(work.serve("/reporting", { headers, body: `<!doctype html><img src="/held">` }));
    },
  },
  inPage(
    "download",
    `const link = document.createElement("a"); link.href = url; link.download = "held"; document.body.append(link); link.click(); await soon(new Promise(() => {}), 300)`,
  ),
];

const workerScript = (work: { url(): string }): string =>
  `fetch(${JSON.stringify(work.url())}, { mode: "no-cors" }).catch(() => {}).then(() => self.postMessage?.(1))`;
const javaScript = { "content-type": "text/javascript" };

/** Requests from where there is no document. */
export const workers: readonly Attempt[] = [
  inPage(
    "worker",
    (work) =>
      `const worker = new Worker(${JSON.stringify(work.serve("/worker.js", { headers: javaScript, body: workerScript(work) }))}); await soon(new Promise((resolve) => (worker.onmessage = worker.onerror = resolve)))`,
  ),
  inPage(
    "worker's imported script",
    (work) =>
      `const worker = new Worker(${JSON.stringify(work.serve("/worker.js", { headers: javaScript, body: `try { importScripts(${JSON.stringify(work.url())}) } finally { postMessage(1) }` }))}); await soon(new Promise((resolve) => (worker.onmessage = worker.onerror = resolve)))`,
  ),
  inPage(
    "blob: worker",
    (work) =>
      `const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(workerScript(work))}]))); await soon(new Promise((resolve) => (worker.onmessage = worker.onerror = resolve)))`,
  ),
  inPage(
    "worker's WebSocket",
    (work) =>
      `const worker = new Worker(${JSON.stringify(work.serve("/worker.js", { headers: javaScript, body: `new WebSocket(${JSON.stringify(work.url({ scheme: "ws" }))}).onclose = () => postMessage(1)` }))}); await soon(new Promise((resolve) => (worker.onmessage = worker.onerror = resolve)))`,
  ),
  inPage(
    "shared worker",
    (work) =>
      `const worker = new SharedWorker(${JSON.stringify(work.serve("/shared.js", { headers: javaScript, body: `onconnect = ({ ports: [port] }) => ${workerScript(work).replace("self", "port")}` }))}); worker.port.start(); await soon(new Promise((resolve) => (worker.port.onmessage = worker.onerror = resolve)))`,
  ),
  inPage("service worker's own fetch", (work) => {
    const body = `oninstall = (event) => event.waitUntil(fetch(${JSON.stringify(work.url())}, { mode: "no-cors" }).catch(() => {}))`;
    return `await soon(navigator.serviceWorker.register(${JSON.stringify(work.serve("/sw.js", { headers: javaScript, body }))})).catch(() => {}); await soon(navigator.serviceWorker.getRegistration(${JSON.stringify(work.serve("/", {}))}).then((found) => found && new Promise((resolve) => { const worker = found.installing; if (worker) worker.onstatechange = resolve; else resolve(); })))`;
  }),
  inPage("service worker that answers with a denied page", (work) => {
    const body = `oninstall = () => skipWaiting(); onactivate = (event) => event.waitUntil(clients.claim()); onfetch = (event) => event.respondWith(fetch(${JSON.stringify(work.url())}, { mode: "no-cors" }))`;
    const script = work.serve("/sw.js", { headers: javaScript, body });
    return `const found = await navigator.serviceWorker.register(${JSON.stringify(script)}); await soon(new Promise((resolve) => { if (found.active) resolve(); else (found.installing ?? found.waiting).onstatechange = ({ target }) => target.state === "activated" && resolve(); })); await put("iframe", { src: ${JSON.stringify(work.serve("/framed", {}))} })`;
  }),
];

const hint = (rel: string, given = "", other: Partial<Attempt> = {}): Attempt =>
  inPage(
    `hint: ${rel}${given && " as a script"}`,
    `await Promise.race([put("link", { rel: "${rel}", href: url${given} }), new Promise((resolve) => setTimeout(resolve, 1000))])`,
    other,
  );
/** Only what is trustworthy is fetched ahead, and only the same site is rendered: loopback is both. */
const speculate = (what: string): Attempt =>
  inPage(
    `speculation rules: ${what}`,
    (work) =>
      `const rules = document.createElement("script"); rules.type = "speculationrules"; rules.textContent = JSON.stringify({ ${what}: [{ source: "list", urls: [${JSON.stringify(work.url({ host: "127.0.0.1" }))}], eagerness: "immediate" }] }); document.body.append(rules); await soon(new Promise(() => {}), 1000)`,
  );

/** What a browser fetches before anybody asks. */
export const hints: readonly Attempt[] = [
  hint("prefetch"),
  hint("preload", `, as: "script"`),
  hint("modulepreload"),
  hint("preconnect"),
  hint("prerender", "", never("Chromium 156 heeds speculation rules instead")),
  hint("manifest", "", never("it is fetched when a page is installed: see Page.getAppManifest")),
  hint("icon", "", never("headless Chromium shows none")),
  inPage(
    "hint: dns-prefetch",
    (work) =>
      `await Promise.race([put("link", { rel: "dns-prefetch", href: "//${work.name("outside")}" }), new Promise((resolve) => setTimeout(resolve, 1000))])`,
    { needs: ["names"] },
  ),
  inPage(
    "hint: preconnect by name",
    (work) =>
      `await Promise.race([put("link", { rel: "preconnect", href: "${work.url({ host: work.name("outside") })}" }), new Promise((resolve) => setTimeout(resolve, 1000))])`,
    { needs: ["names"] },
  ),
  speculate("prefetch"),
  speculate("prerender"),
  {
    name: "hint: Link header",
    reachesPlain: true,
    run: (work) =>
      work.open(work.serve("/linked", { headers: { link: `<${work.url()}>; rel=preload; as=script` } })),
  },
];
