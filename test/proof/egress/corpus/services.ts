import { type Attempt, inDocument, inPage, type Never, type Work } from "./attempt.js";

const never = (because: string): { reachesPlain: Never } => ({ reachesPlain: { because } });
/** What wants a trustworthy address gets one that is closed and that needs no certificate. */
const loopback = (work: Work): string => work.url({ host: "127.0.0.1" });
const waited = (ms: number): string => `await soon(new Promise(() => {}), ${ms});`;

/** A service worker of that script, as `found`, once it is active. */
const activated = (script: string): string =>
  `const found = await navigator.serviceWorker.register(${JSON.stringify(script)});
  await soon(new Promise((resolve) => { if (found.active) resolve(); else found.installing.onstatechange = ({ target }) => target.state === "activated" && resolve(); }));`;

/** Names that Chromium itself asks for, of hosts that nobody has named. */
function sawNames(work: Work, wanted: RegExp): void {
  for (const name of work.namesAsked()) if (wanted.test(name)) work.saw(`dns ${name}`);
}

/** Reports that a browser sends for a site; the page is closed, when what is left is sent. */
const reports: readonly Attempt[] = [
  {
    name: "Reporting API: an endpoint of a header",
    ...never("Chromium heeds the header over TLS alone; that of a content security policy is tried too"),
    async run(work) {
      const headers = {
        "reporting-endpoints": `held="${loopback(work)}"`,
        "content-security-policy": "img-src 'none'; report-to held",
      };
      const page = await work.open(work.serve("/reporting", { headers, body: `<img src="/held">` }));
      await page.evaluate(waited(500));
      await work.cdp.send("Target.closeTarget", { targetId: page.target });
      await (await work.open()).evaluate(waited(500));
    },
  },
  {
    name: "Network Error Logging",
    ...never("Chromium heeds the header of verified TLS alone"),
    async run(work) {
      const headers = {
        "report-to": JSON.stringify({ group: "held", max_age: 1000, endpoints: [{ url: loopback(work) }] }),
        nel: JSON.stringify({ report_to: "held", max_age: 1000, success_fraction: 1 }),
      };
      const page = await work.open(work.serve("/logging", { headers }));
      await page.goto(work.serve("/logged", { headers }));
      await page.evaluate(waited(500));
    },
  },
  inDocument(
    "attribution of a source",
    (url) => `<img attributionsrc="${url}" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">`,
    never("Chromium 156 has no attribution reporting"),
  ),
];

const subject = "Uint8Array.of(1, 2, 3, 4)";
/** Sign-in, payments and messages: each has addresses that Chromium asks by itself. */
const credentials: readonly Attempt[] = [
  inPage(
    "FedCM: a provider's configuration",
    (work) =>
      `await soon(navigator.credentials.get({ identity: { providers: [{ configURL: ${JSON.stringify(loopback(work))}, clientId: "held", nonce: "held" }] } })).catch(() => {})`,
  ),
  inPage(
    "WebAuthn: origins that belong to another name",
    (work) =>
      `await soon(navigator.credentials.create({ publicKey: { challenge: ${subject}, rp: { id: "${work.name("outside")}", name: "held" }, user: { id: ${subject}, name: "held", displayName: "held" }, pubKeyCredParams: [{ type: "public-key", alg: -7 }] } })).catch(() => {})`,
    { needs: ["names"], ...never("an address has no related origins, and the allowed site is one") },
  ),
  inPage(
    "payment: the manifest of a method",
    (work) =>
      `const request = new PaymentRequest([{ supportedMethods: ${JSON.stringify(loopback(work))} }], { total: { label: "held", amount: { currency: "EUR", value: "1" } } }); await soon(request.canMakePayment()).catch(() => {}); await soon(request.show(), 1000).catch(() => {})`,
  ),
  {
    name: "push messages: a subscription",
    needs: ["chromium", "names", "privileged-cdp"],
    isAlone: true,
    reachesPlain: true,
    async run(work) {
      const { origin } = work.site;
      await work.cdp.send("Browser.grantPermissions", { origin, permissions: ["notifications"] });
      const script = work.serve("/push.js", { headers: { "content-type": "text/javascript" }, body: "" });
      const page = await work.open();
      // A public key of P-256: the point 04 and its two coordinates, here those of the generator.
      await page.evaluate(`${activated(script)}
        const key = Uint8Array.from("${generator}".match(/../g).map((each) => parseInt(each, 16)));
        await soon(found.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }), 4000).catch(() => {});`);
      sawNames(work, /mtalk|android\.clients|fcm/);
    },
  },
];

const generator =
  "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";

/** What a certificate has Chromium fetch, all of it by the same fetcher: issuers, OCSP and lists. */
const certificates: readonly Attempt[] = [
  {
    name: "a certificate's issuer, and what was revoked",
    needs: ["names"],
    isAlone: true,
    reachesPlain: true,
    async run(work) {
      const page = await work.open();
      await page.goto(work.secure.origin);
      await page.evaluate(waited(500));
      sawNames(work, /(?:issuer|ocsp|crl)\.outside\.test$/);
    },
  },
  {
    name: "a portal that is looked for after a certificate's error",
    needs: ["names"],
    isAlone: true,
    ...never("Chromium looks for one when it thinks fit, seldom within this time"),
    async run(work) {
      const page = await work.open();
      await page.goto(work.secure.origin);
      await page.evaluate(waited(2500));
      sawNames(work, /gstatic|connectivity/);
    },
  },
];

/** Fetches that go on, or come, without the page. */
const ahead: readonly Attempt[] = [
  {
    name: "background fetch",
    needs: ["privileged-cdp"],
    ...never("headless Chromium 156 fetches nothing by it"),
    async run(work) {
      const { origin } = work.site;
      await work.cdp.send("Browser.setPermission", {
        origin,
        permission: { name: "background-fetch" },
        setting: "granted",
      });
      const script = work.serve("/fetching.js", { headers: { "content-type": "text/javascript" }, body: "" });
      const page = await work.open();
      await page.evaluate(`${activated(script)}
        await soon(found.backgroundFetch.fetch("held", [${JSON.stringify(loopback(work))}])).catch(() => {}); ${waited(500)}`);
    },
  },
  {
    name: "speculation rules: of a header",
    reachesPlain: true,
    async run(work) {
      const list = { source: "list", urls: [loopback(work)], eagerness: "immediate" };
      const rules = work.serve("/rules.json", {
        headers: { "content-type": "application/speculationrules+json" },
        body: JSON.stringify({ prefetch: [list] }),
      });
      const headers = { "speculation-rules": `"${rules}"` };
      const page = await work.open(work.serve("/speculating", { headers, body: "<!doctype html>" }));
      await page.evaluate(waited(1000));
    },
  },
  {
    name: "speculation rules: links of the document",
    reachesPlain: true,
    async run(work) {
      const rules = { prefetch: [{ source: "document", where: { and: [] }, eagerness: "immediate" }] };
      const body = `<!doctype html><script type=speculationrules>${JSON.stringify(rules)}</script><a href="${loopback(work)}">held</a>`;
      const page = await work.open(work.serve("/speculating", { body }));
      await page.evaluate(waited(1000));
    },
  },
  inPage(
    "speculation rules: by a proxy of others",
    (work) =>
      `const rules = document.createElement("script"); rules.type = "speculationrules"; rules.textContent = JSON.stringify({ prefetch: [{ source: "list", requires: ["anonymous-client-ip-when-cross-origin"], urls: [${JSON.stringify(loopback(work))}], eagerness: "immediate" }] }); document.body.append(rules); ${waited(1000)}`,
    never("Chromium asks its maker's proxy, and has none"),
  ),
  inDocument("hint: compression-dictionary", (url) => `<link rel="compression-dictionary" href="${url}">`),
  inDocument(
    "hint: search",
    (url) => `<link rel="search" type="application/opensearchdescription+xml" title="held" href="${url}">`,
    never("headless Chromium learns no search engines"),
  ),
  inPage(
    "WebTransport with the digest of a certificate",
    `const transport = new WebTransport(url.replace("http", "https"), { serverCertificateHashes: [{ algorithm: "sha-256", value: new Uint8Array(32) }] }); await soon(transport.ready, 2000).catch(() => {})`,
  ),
];

/** What Chromium's own services fetch, for a page or because of it. */
export const services: readonly Attempt[] = [...reports, ...credentials, ...certificates, ...ahead];
