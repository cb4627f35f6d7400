import { isText } from "../../base/is-text.js";
import type { Command } from "../cdp/command.js";

/** Every command of these domains: what they do shows nothing of a page, or shows what no page has. */
const openDomains: ReadonlySet<string> = new Set([
  "BackgroundService",
  "BluetoothEmulation",
  "Browser",
  "CacheStorage",
  "Cast",
  "DOMStorage",
  "DeviceAccess",
  "DeviceOrientation",
  "DigitalCredentials",
  "Emulation",
  "FedCm",
  "IndexedDB",
  "Inspector",
  "Log",
  "PWA",
  "Performance",
  "Preload",
  "Schema",
  "Security",
  "ServiceWorker",
  "SmartCardEmulation",
  "Storage",
  "SystemInfo",
  "Target",
  "Tethering",
  "WebAuthn",
]);

/**
 * The other domains have these alone: what is new with a Chromium is refused until somebody has read what it
 * shows.
 */
const openCommands: Readonly<Record<string, string>> = {
  Accessibility: "disable",
  Animation: "disable enable setPlaybackRate",
  Autofill: "disable enable setAddresses",
  CSS: "disable",
  Console: "clearMessages disable",
  DOM: "disable discardSearchResults enable focus getBoxModel getContentQuads hideHighlight scrollIntoViewIfNeeded",
  DOMDebugger: "removeDOMBreakpoint removeEventListenerBreakpoint removeXHRBreakpoint",
  DOMSnapshot: "disable enable",
  Debugger: "disable removeBreakpoint resume setBreakpointsActive setSkipAllPauses",
  Fetch: "continueRequest continueResponse continueWithAuth disable enable failRequest",
  HeapProfiler: "collectGarbage disable stopSampling",
  Input: `cancelDragging dispatchKeyEvent dispatchMouseEvent dispatchTouchEvent emulateTouchFromMouseEvent
    imeSetComposition insertText setIgnoreInputEvents synthesizePinchGesture synthesizeScrollGesture
    synthesizeTapGesture`,
  IO: "close",
  LayerTree: "disable releaseSnapshot",
  Media: "disable",
  Network: `canClearBrowserCache canClearBrowserCookies canEmulateNetworkConditions clearBrowserCache
    clearBrowserCookies deleteCookies disable emulateNetworkConditions emulateNetworkConditionsByRule enable
    getAllCookies getCertificate getCookies getSecurityIsolationStatus overrideNetworkState setBlockedURLs
    setBypassServiceWorker setCacheDisabled setCookie setCookieControls setCookies setExtraHTTPHeaders
    setUserAgentOverride`,
  Overlay: "disable hideHighlight",
  Page: `addScriptToEvaluateOnNewDocument bringToFront clearDeviceMetricsOverride clearDeviceOrientationOverride
    clearGeolocationOverride close createIsolatedWorld disable enable getFrameTree getLayoutMetrics
    getNavigationHistory handleJavaScriptDialog navigate navigateToHistoryEntry reload
    removeScriptToEvaluateOnNewDocument resetNavigationHistory screencastFrameAck setBypassCSP
    setDeviceMetricsOverride setDeviceOrientationOverride setDownloadBehavior setFontFamilies setFontSizes
    setGeolocationOverride setInterceptFileChooserDialog setLifecycleEventsEnabled setTouchEmulationEnabled
    setWebLifecycleState stopLoading stopScreencast stopScreenRecording waitForDebugger`,
  PerformanceTimeline: "enable",
  Profiler: "disable stop stopPreciseCoverage",
  Runtime: `addBinding disable discardConsoleEntries enable getHeapUsage getIsolateId releaseObject
    releaseObjectGroup removeBinding runIfWaitingForDebugger setAsyncCallStackDepth setMaxCallStackSizeToCapture
    terminateExecution`,
  WebAudio: "disable",
  WebMCP: "cancelInvocation disable",
};
const open: ReadonlySet<string> = new Set(
  Object.entries(openCommands).flatMap(([domain, names]) =>
    names.split(/\s+/).map((name) => `${domain}.${name}`),
  ),
);

const onNewDocument = "Page.addScriptToEvaluateOnNewDocument";

/**
 * Chromium's URL parser drops spaces and control characters, so all are dropped before. What is no text it
 * refuses.
 */
const isScriptUrl = (url: unknown): boolean =>
  isText(url) &&
  url
    .replaceAll(/[\s\p{Cc}]/gu, "")
    .toLowerCase()
    .startsWith("javascript:");

/**
 * What Playwright and Puppeteer have in a page only to name a world of their own: comments, or nothing. Line
 * by line: one expression for all of it tries exponentially many ways through a line of many comments.
 */
const isEmptyScript = (source: unknown): boolean =>
  source === undefined || (isText(source) && source.split(lineEnd).every(isEmptyLine));
const lineEnd = /[\n\r\u2028\u2029]/;
const isEmptyLine = (line: string): boolean => /^\s*(?:\/\/|$)/.test(line);

/**
 * Whether a command answers a request of a page, or has it answered from elsewhere: by a script, maybe, which
 * reads the page.
 */
const answersRequests = ({
  method,
  params,
  written,
}: Pick<Command, "method" | "params" | "written">): boolean =>
  method === "Fetch.fulfillRequest" ||
  (method === "Fetch.continueRequest" && (written !== undefined || params["url"] !== undefined));

/** Whether a command could show what stands in the fields of the page that it is for. */
export function readsPage({
  method,
  params,
  written,
}: Pick<Command, "method" | "params" | "written">): boolean {
  // Another thread has read it, and left none of its params here.
  if (written !== undefined && (method === onNewDocument || method === "Page.navigate")) return true;
  // The next document may be that of a frame of this page, which reads the page around it.
  if (method === onNewDocument) return params["runImmediately"] === true || !isEmptyScript(params["source"]);
  if (method === "Page.navigate") return isScriptUrl(params["url"]);
  if (answersRequests({ method, params, ...(written !== undefined && { written }) })) return true;
  const [domain = ""] = method.split(".", 1);
  return !openDomains.has(domain) && !open.has(method);
}

/** Commands to the whole browser that show its pages. */
export const readsAllPages = (method: string): boolean => /^(?:Tracing\.start|Memory\.)/.test(method);

/** Events that tell what stands in a page; a mirror of the document begins anew with the next one. */
export const tellsOfPage = (event: string): boolean =>
  event === "Page.screencastFrame" ||
  // A text that was marked and is drawn along, where a client has asked for that.
  event === "Input.dragIntercepted" ||
  event.startsWith("Accessibility.") ||
  (event.startsWith("DOM.") && event !== "DOM.documentUpdated");
