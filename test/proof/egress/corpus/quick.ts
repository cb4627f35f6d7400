import { type AttemptKind, corpusByKind } from "./all.js";
import type { Attempt } from "./attempt.js";

/**
 * What `npm test` tries: for each kind, one attempt at each wall that it meets. What else `npm run
 * prove:egress` tries meets the same walls from elsewhere.
 */
const namesByKind: Readonly<Record<AttemptKind, readonly string[]>> = {
  navigations: [
    "plain navigation",
    "new tab at once",
    "view-source: of a denied page",
    "form that is posted",
    "redirect of a navigation (302)",
  ],
  subresources: ["subresource: image", "subresource: PDF in a frame", "sandboxed frame"],
  requests: ["fetch", "WebSocket", "request over TLS", "report of a content security policy", "download"],
  workers: ["worker's WebSocket", "shared worker", "service worker's own fetch"],
  hints: ["hint: dns-prefetch", "hint: preconnect by name", "speculation rules: prefetch"],
  addresses: [
    "address: localhost",
    "address: 127.0.0.1 as a decimal number",
    "address: [::ffff:127.0.0.1]",
    "address: the node's own address",
    "address: the node's own IPv6 address",
    "address: 169.254.169.254",
    "address: a name of the local network",
    "address: an allowed name that resolves to a private address",
    "address: an allowed name that is bound anew, to loopback",
    "address of a request: a name that is not allowed",
    "address of a request: an allowed name that resolves to loopback",
    "port of Remuda itself, loopback and node opened: 127.0.0.1",
  ],
  webrtc: [
    "WebRTC: STUN over UDP",
    "WebRTC: STUN by name",
    "WebRTC: TURN over TCP",
    "WebRTC: a peer's candidate, udp",
    "WebTransport",
  ],
  services: [
    "FedCM: a provider's configuration",
    "push messages: a subscription",
    "a certificate's issuer, and what was revoked",
    "speculation rules: of a header",
  ],
  changes: [
    "rules that change during a WebSocket",
    "rules that change during a connection that is kept for the next request",
  ],
  contexts: [
    "context with proxy direct://, flat",
    "context with proxy of its own, nested twice",
    "context with proxy direct://, by sendMessageToTarget to the browser",
    "context with proxy direct://, proxyServer twice",
    "context with proxy direct://, escaped key",
    "context with proxy direct://, a binary frame",
    "Playwright's newContext with proxy of its own",
    "Puppeteer's createBrowserContext with proxy direct://",
    "Target.exposeDevToolsProtocol, flat",
  ],
  commands: [
    "command: Fetch.continueRequest with another URL",
    "command: Network.loadNetworkResource",
    "command: Security.setIgnoreCertificateErrors before a request over TLS",
    "command: Target.setRemoteLocations",
    "command: Cast.enable looks around in the network",
    "command: Tethering.bind opens a port of the node",
    "command: Page.setDocumentContent",
    "command: PWA.install",
    "command: Runtime.evaluate in a worker's session",
    "command: DevTools fetch their own front end",
    "command: Debugger.enable on a page with a denied map of sources",
    "command: file: of the session's own with a denied image",
    "BiDi: browsingContext.navigate",
    "BiDi: network.continueRequest with another URL",
    "BiDi: script.evaluate that fetches",
    "BiDi: browser.createUserContext with a proxy of its own",
  ],
  extensions: [
    "extension: chrome.proxy direct",
    "extension: chrome.privacy opens WebRTC",
    "extension: fetch of its own",
    "extension: chrome.downloads",
  ],
};

const namesOf = (kind: AttemptKind): ReadonlySet<string> => new Set(namesByKind[kind]);
const kinds = Object.keys(corpusByKind) as AttemptKind[];

/** Attempts by kind; a name that no attempt of its kind has is missing here. */
export const quickByKind = new Map<AttemptKind, readonly Attempt[]>(
  kinds.map((kind) => [kind, corpusByKind[kind].filter(({ name }) => namesOf(kind).has(name))]),
);
export const quick: readonly Attempt[] = [...quickByKind.values()].flat();

/** Names that stand for nothing. */
export const unknown: readonly string[] = kinds
  .flatMap((kind) => namesByKind[kind])
  .filter((name) => !quick.some((attempt) => attempt.name === name));

/** Asks for names that no attempt has made, which must not be held against what is tried after it. */
const asksForOthers = "command: DevTools fetch their own front end";
const isAble = ({ reachesPlain }: Attempt): boolean => reachesPlain === true;
/** Tried without a guard too: the first of each kind that reaches something then. */
export const controls: readonly Attempt[] = quick.filter(
  (attempt) =>
    attempt.name === asksForOthers ||
    [...quickByKind.values()].some((attempts) => attempts.find(isAble) === attempt),
);

/** What passes by a proxy: behind these the namespace has to hold by itself. */
export const namespaceNames: ReadonlySet<string> = new Set([
  "plain navigation",
  "hint: dns-prefetch",
  "address: the node's own address",
  "address: an allowed name that resolves to a private address",
  "port of Remuda itself, loopback and node opened: 127.0.0.1",
  "WebRTC: STUN over UDP",
  "WebRTC: a peer's candidate, udp",
  "a certificate's issuer, and what was revoked",
  "rules that change during a WebSocket",
]);
