import { ofSession, type Trace } from "./trace.js";

/** What a client has set for its own sessions. */
export const settings: readonly Trace[] = [
  ofSession(
    "an override of the time zone",
    ["Emulation.setTimezoneOverride", { timezoneId: "Pacific/Chatham" }],
    `Intl.DateTimeFormat().resolvedOptions().timeZone === "Pacific/Chatham"`,
  ),
  ofSession(
    "an override of the user agent",
    ["Emulation.setUserAgentOverride", { userAgent: "held" }],
    `navigator.userAgent === "held"`,
  ),
  ofSession(
    "an override of the screen's size",
    ["Emulation.setDeviceMetricsOverride", { width: 333, height: 444, deviceScaleFactor: 3, mobile: false }],
    "innerWidth === 333",
  ),
  ofSession(
    "an override of processors",
    ["Emulation.setHardwareConcurrencyOverride", { hardwareConcurrency: 77 }],
    "navigator.hardwareConcurrency === 77",
  ),
  ofSession(
    "headers of every request",
    ["Network.setExtraHTTPHeaders", { headers: { "x-held": "1" } }],
    `(await (await fetch("/headers")).text()).includes("x-held")`,
  ),
  ofSession(
    "a network that is off",
    [
      "Network.emulateNetworkConditions",
      { offline: true, latency: 0, downloadThroughput: -1, uploadThroughput: -1 },
    ],
    `await fetch("/online").then(() => false, () => true)`,
  ),
  ofSession(
    "addresses that are blocked",
    [
      "Network.setBlockedURLs",
      { urls: ["*/blocked"], urlPatterns: [{ urlPattern: "*://*:*/blocked", block: true }] },
    ],
    `await fetch("/blocked").then(() => false, () => true)`,
  ),
  ofSession(
    "requests that are held back",
    ["Fetch.enable", { patterns: [{ urlPattern: "*/paused" }] }],
    `(await soon(fetch("/paused"), 1000)) === undefined`,
  ),
  ofSession(
    "a script for every document",
    ["Page.addScriptToEvaluateOnNewDocument", { source: "globalThis.held = 1" }],
    "globalThis.held === 1",
  ),
  ofSession(
    "an authenticator that is simulated",
    [
      "WebAuthn.addVirtualAuthenticator",
      {
        options: {
          protocol: "ctap2",
          transport: "internal",
          hasResidentKey: true,
          hasUserVerification: true,
          isUserVerified: true,
        },
      },
    ],
    "await soon(PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable(), 1000)",
  ),
  ofSession(
    "a worker that waits for its client",
    ["Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: true, flatten: true }],
    `(await soon(new Promise((resolve) => { new Worker(URL.createObjectURL(new Blob(["postMessage(1)"]))).onmessage = () => resolve(1); }), 1500)) === undefined`,
  ),
];
