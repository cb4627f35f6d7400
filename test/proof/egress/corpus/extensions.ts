import { systemClock } from "../../../../src/base/clock.js";
import { within } from "../../../../src/base/deadline.js";
import type { RawReply } from "../../../support/gateway/raw-cdp.js";
import type { Attempt, Work } from "./attempt.js";

interface Extension {
  readonly permissions: readonly string[];
  /** Its service worker; `url` is the denied one. */
  readonly worker: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly manifest?: object;
}

/** Loads it as any holder can; false where that is refused. */
const load = (work: Work, { permissions, worker, files = {}, manifest = {} }: Extension): Promise<boolean> =>
  work.extend({
    "manifest.json": JSON.stringify({
      manifest_version: 3,
      name: work.nonce,
      version: "1",
      permissions,
      host_permissions: ["<all_urls>"],
      background: { service_worker: "worker.js" },
      ...manifest,
    }),
    "worker.js": `const url = ${JSON.stringify(work.url())}; ${worker}`,
    ...files,
  });

/** A worker says it where all was refused too. */
const doneLimitMs = 60_000;

/** Says to the allowed site that it is done, or that it cannot: then the attempt goes on. */
const done = (work: Work): string => JSON.stringify(work.serve("/done", {}));
const told = (work: Work): Promise<unknown> =>
  within(
    systemClock,
    { what: "the extension's last word", limitMs: doneLimitMs },
    work.site.heard(`/${work.nonce}/done`),
  ).catch(() => {});

interface AttemptOptions extends Partial<Attempt> {
  /** What is tried once the extension has done its part; visits the denied page unless told otherwise. */
  after?(work: Work): Promise<unknown>;
}

const visit = async (work: Work): Promise<RawReply> => (await work.open()).goto(work.url());

const extension = (
  name: string,
  made: (work: Work) => Extension,
  { after = visit, ...other }: AttemptOptions = {},
): Attempt => ({
  name: `extension: ${name}`,
  needs: ["chromium", "privileged-cdp", "uploads"],
  isAlone: true,
  reachesPlain: true,
  ...other,
  async run(work) {
    const wanted = made(work);
    const isLoaded = await load(work, {
      ...wanted,
      worker: `(async () => { ${wanted.worker} })().finally(() => fetch(${done(work)}).catch(() => {}));`,
    });
    if (!isLoaded) return;
    await told(work);
    await after(work);
  },
});

const gather = async (work: Work): Promise<unknown> =>
  (await work.open()).evaluate(`
  const peer = new RTCPeerConnection({ iceServers: [{ urls: "stun:${work.world.denied}:${work.port}" }] });
  peer.createDataChannel("held");
  await peer.setLocalDescription();
  await soon(new Promise((resolve) => (peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && resolve())), 4000);`);

const setProxy = (value: string): string =>
  `await chrome.proxy.settings.set({ scope: "regular", value: ${value} });`;
const script = `function FindProxyForURL() { return "DIRECT"; }`;

/** That a setting has turned the browser from its proxy shows in the visit after it. */
const settings: readonly Attempt[] = [
  extension("chrome.proxy direct", () => ({
    permissions: ["proxy"],
    worker: setProxy(`{ mode: "direct" }`),
  })),
  extension("chrome.proxy of the system", () => ({
    permissions: ["proxy"],
    worker: setProxy(`{ mode: "system" }`),
  })),
  extension("chrome.proxy with a bypass list", () => ({
    permissions: ["proxy"],
    worker: setProxy(
      `{ mode: "fixed_servers", rules: { singleProxy: { host: "127.0.0.1", port: 9 }, bypassList: ["*"] } }`,
    ),
  })),
  extension(
    "chrome.proxy with a proxy of its own",
    ({ world, port }) => ({
      permissions: ["proxy"],
      worker: setProxy(
        `{ mode: "fixed_servers", rules: { singleProxy: { host: ${JSON.stringify(world.denied)}, port: ${port} } } }`,
      ),
    }),
    { after: (work) => work.open(work.serve("/elsewhere", {})) },
  ),
  extension("auto-config script that says DIRECT", () => ({
    permissions: ["proxy"],
    worker: setProxy(`{ mode: "pac_script", pacScript: { data: ${JSON.stringify(script)} } }`),
  })),
  extension("auto-config script at a URL", () => ({
    permissions: ["proxy"],
    worker: setProxy(`{ mode: "pac_script", pacScript: { url } }`),
  })),
  extension("automatic discovery of a proxy", () => ({
    permissions: ["proxy"],
    worker: setProxy(`{ mode: "auto_detect" }`),
  })),
  extension(
    "chrome.privacy opens WebRTC",
    () => ({
      permissions: ["privacy"],
      worker: `await chrome.privacy.network.webRTCIPHandlingPolicy.set({ value: "default" });`,
    }),
    { after: gather },
  ),
];

const others: readonly Attempt[] = [
  extension("chrome.privacy opens prediction of the network", () => ({
    permissions: ["privacy"],
    worker: "await chrome.privacy.network.networkPredictionEnabled.set({ value: true });",
  })),
  extension(
    "fetch of its own",
    () => ({ permissions: [], worker: `await fetch(url, { mode: "no-cors" }).catch(() => {});` }),
    { after: async () => {} },
  ),
  extension(
    "WebSocket of its own",
    () => ({
      permissions: [],
      worker: `const socket = new WebSocket(url.replace("http", "ws")); await new Promise((resolve) => (socket.onclose = resolve));`,
    }),
    { after: async () => {} },
  ),
  extension(
    "script in every page",
    (work) => ({
      permissions: [],
      worker: "",
      files: { "content.js": `fetch(${JSON.stringify(work.url())}, { mode: "no-cors" })` },
      manifest: { content_scripts: [{ matches: ["<all_urls>"], js: ["content.js"] }] },
    }),
    { after: async (work) => (await work.open()).evaluate("await soon(new Promise(() => {}), 300)") },
  ),
  extension(
    "redirect by declarativeNetRequest",
    () => ({
      permissions: ["declarativeNetRequest"],
      worker: `await chrome.declarativeNetRequest.updateDynamicRules({ addRules: [{ id: 1, action: { type: "redirect", redirect: { url } }, condition: { urlFilter: "/diverted", resourceTypes: ["main_frame"] } }] });`,
    }),
    { after: (work) => work.open(work.serve("/diverted", {})) },
  ),
  extension(
    "chrome.downloads",
    () => ({ permissions: ["downloads"], worker: "await chrome.downloads.download({ url });" }),
    { after: async () => {} },
  ),
  extension("chrome.tabs", () => ({ permissions: ["tabs"], worker: "await chrome.tabs.create({ url });" }), {
    after: async () => {},
  }),
  extension(
    "chrome.debugger makes a context",
    () => ({
      permissions: ["debugger", "tabs"],
      worker: `const [tab] = await chrome.tabs.query({}); await chrome.debugger.attach({ tabId: tab.id }, "1.3");
      await chrome.debugger.sendCommand({ tabId: tab.id }, "Network.loadNetworkResource", { url, options: { disableCache: true, includeCredentials: false } }).catch(() => {});
      const { browserContextId } = await chrome.debugger.sendCommand({ tabId: tab.id }, "Target.createBrowserContext", { proxyServer: "direct://" });
      await chrome.debugger.sendCommand({ tabId: tab.id }, "Target.createTarget", { url, browserContextId });`,
    }),
    {
      after: async () => {},
      reachesPlain: { because: "Chromium gives extensions no commands of the browser" },
    },
  ),
];

export const extensions: readonly Attempt[] = [
  ...settings.map((attempt): Attempt => ({ ...attempt, leavesProxy: true })),
  ...others,
];
