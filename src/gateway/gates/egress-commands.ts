import { pass, refuseCommand, type Rule } from "./gate.js";

/**
 * What is refused of the commands and parameters by which the browser might be sent past its proxy;
 * `harmless` ones were looked at and are not. A name of two parts is a command, a longer one a parameter,
 * nested ones by a dotted path.
 */
interface EgressVerdict {
  readonly is: "refused" | "harmless";
  readonly because: string;
}

const refused = (because: string): EgressVerdict => ({ is: "refused", because });
const harmless = (because: string): EgressVerdict => ({ is: "harmless", because });

const pageOnly = harmless("names a site whose stored things are looked at or changed");
const cookie = harmless("belongs to a cookie");
const emulated = harmless("names a device that is only simulated");
const targetOnly = harmless("moves sessions, targets and contexts, and connects to nothing");
/** A client may send any header: what may not go on, the proxy drops, for extensions could send it too. */
const header = harmless(
  "goes through the proxy, which judges the address and drops what is meant for proxies",
);
const casting = refused("it looks for receivers in the network and sends to them without the proxy");

/**
 * A test compares this table with the protocol types of the installed playwright-core: every command of the
 * domains Target, Tethering and Cast, and every parameter whose name speaks of addresses, proxies or headers.
 * URLs are in file-parameters.ts.
 */
export const egressTable: Readonly<Record<string, EgressVerdict>> = {
  // Beats switch and policy. An empty text means a direct connection, and so does a blank one (Chromium 156,
  // docs/chromium.md#ways-past-the-proxy).
  "Target.createBrowserContext.proxyServer": refused("a context has the proxy of its session"),
  "Target.createBrowserContext.proxyBypassList": refused("a context has the proxy of its session"),
  // Polls each location over TCP from the browser process, whatever its proxy, on page sessions too (Chromium
  // 156, docs/chromium.md#ways-past-the-proxy).
  "Target.setRemoteLocations": refused("the browser would connect to them without the proxy"),
  "Target.setRemoteLocations.locations": refused("see the command"),
  "Target.setRemoteLocations.locations.host": refused("see the command"),
  "Target.setRemoteLocations.locations.port": refused("see the command"),
  "Target.exposeDevToolsProtocol": refused("page scripts would send commands that no gate sees"),
  "Target.sendMessageToTarget": harmless("what it carries is opened and judged (carried-rule.ts)"),
  "Target.openDevTools": refused("developer tools find and connect to devices without the proxy"),
  "Tethering.bind": refused("it opens a port of the node"),
  "Tethering.bind.port": refused("see the command"),
  "Cast.enable": casting,
  "Cast.setSinkToUse": casting,
  "Cast.setSinkToUse.sinkName": casting,
  "Cast.startDesktopMirroring": casting,
  "Cast.startDesktopMirroring.sinkName": casting,
  "Cast.startTabMirroring": casting,
  "Cast.startTabMirroring.sinkName": casting,

  "Cast.disable": harmless("ends what is refused"),
  "Cast.stopCasting": harmless("ends what is refused"),
  "Cast.stopCasting.sinkName": harmless("ends what is refused"),
  "Tethering.unbind": harmless("ends what is refused"),
  "Tethering.unbind.port": harmless("ends what is refused"),

  "Target.activateTarget": targetOnly,
  "Target.attachToBrowserTarget": harmless("its session passes the same gate"),
  "Target.attachToTarget": harmless("its session passes the same gate"),
  "Target.autoAttachRelated": targetOnly,
  "Target.closeTarget": targetOnly,
  "Target.createBrowserContext": harmless("has the browser's proxy where it names none"),
  "Target.createBrowserContext.originsWithUniversalNetworkAccess": harmless(
    "lifts rules between sites, not the proxy",
  ),
  "Target.createTarget": harmless("loads through the proxy"),
  "Target.detachFromTarget": targetOnly,
  "Target.disposeBrowserContext": targetOnly,
  "Target.getBrowserContexts": targetOnly,
  "Target.getDevToolsTarget": targetOnly,
  "Target.getTargetInfo": targetOnly,
  "Target.getTargets": targetOnly,
  "Target.setAutoAttach": targetOnly,
  "Target.setDiscoverTargets": targetOnly,

  "CacheStorage.requestCachedResponse.requestHeaders": pageOnly,
  "Fetch.continueRequest.headers": header,
  "Fetch.continueResponse.binaryResponseHeaders": harmless("changes what the page is told"),
  "Fetch.continueResponse.responseHeaders": harmless("changes what the page is told"),
  "Fetch.fulfillRequest.binaryResponseHeaders": harmless("changes what the page is told"),
  "Fetch.fulfillRequest.responseHeaders": harmless("changes what the page is told"),
  "Network.setExtraHTTPHeaders.headers": header,

  "Autofill.setAddresses.addresses": harmless("postal addresses"),
  "Autofill.trigger.address": harmless("a postal address"),
  "BluetoothEmulation.addService.address": emulated,
  "BluetoothEmulation.simulateAdvertisement.entry.deviceAddress": emulated,
  "BluetoothEmulation.simulateGATTDisconnection.address": emulated,
  "BluetoothEmulation.simulateGATTOperationResponse.address": emulated,
  "BluetoothEmulation.simulatePreconnectedPeripheral.address": emulated,
  "Browser.grantPermissions.origin": harmless("names whom a permission is given to"),
  "Browser.setPermission.embeddedOrigin": harmless("names whom a permission is given to"),
  "Browser.setPermission.origin": harmless("names whom a permission is given to"),
  "CSS.addRule.location": harmless("a place in a text"),
  "Debugger.continueToLocation.location": harmless("a place in a text"),
  "Debugger.setBreakpoint.location": harmless("a place in a text"),
  "Input.dispatchKeyEvent.location": harmless("a place on the keyboard"),
  "Network.emulateNetworkConditionsByRule.matchedNetworkConditions": harmless(
    "slows down what goes through the proxy",
  ),
  "Network.enable.reportDirectSocketTraffic": harmless(
    "reports; sockets are for isolated web apps, which are off",
  ),
  "Network.fetchSchemefulSite.origin": harmless("computes a name"),
  "Network.getCertificate.origin": harmless("tells what is known already"),
  "Network.setBypassServiceWorker.bypass": harmless("leaves out a service worker, not the proxy"),
  "Page.printToPDF.displayHeaderFooter": harmless("of a printed page"),
  "Page.printToPDF.headerTemplate": harmless("of a printed page"),
  "Performance.enable.timeDomain": harmless("a kind of clock"),
  "Performance.setTimeDomain.timeDomain": harmless("a kind of clock"),
  "ServiceWorker.deliverPushMessage.origin": harmless("is delivered inside the browser"),
  "ServiceWorker.dispatchPeriodicSyncEvent.origin": harmless("is delivered inside the browser"),
  "ServiceWorker.dispatchSyncEvent.origin": harmless("is delivered inside the browser"),

  "CacheStorage.requestCacheNames.securityOrigin": pageOnly,
  "DOMStorage.clear.storageId.securityOrigin": pageOnly,
  "DOMStorage.getDOMStorageItems.storageId.securityOrigin": pageOnly,
  "DOMStorage.removeDOMStorageItem.storageId.securityOrigin": pageOnly,
  "DOMStorage.setDOMStorageItem.storageId.securityOrigin": pageOnly,
  "IndexedDB.clearObjectStore.securityOrigin": pageOnly,
  "IndexedDB.deleteDatabase.securityOrigin": pageOnly,
  "IndexedDB.deleteObjectStoreEntries.securityOrigin": pageOnly,
  "IndexedDB.getMetadata.securityOrigin": pageOnly,
  "IndexedDB.requestData.securityOrigin": pageOnly,
  "IndexedDB.requestDatabase.securityOrigin": pageOnly,
  "IndexedDB.requestDatabaseNames.securityOrigin": pageOnly,
  "Storage.clearDataForOrigin.origin": pageOnly,
  "Storage.clearPrivateVerificationTokens.issuerOrigin": pageOnly,
  "Storage.clearTrustTokens.issuerOrigin": pageOnly,
  "Storage.getUsageAndQuota.origin": pageOnly,
  "Storage.overrideQuotaForOrigin.origin": pageOnly,
  "Storage.trackCacheStorageForOrigin.origin": pageOnly,
  "Storage.trackIndexedDBForOrigin.origin": pageOnly,
  "Storage.untrackCacheStorageForOrigin.origin": pageOnly,
  "Storage.untrackIndexedDBForOrigin.origin": pageOnly,

  "Network.deleteCookies.domain": cookie,
  "Network.setCookie.domain": cookie,
  "Network.setCookie.sourcePort": cookie,
  "Network.setCookies.cookies.domain": cookie,
  "Network.setCookies.cookies.sourcePort": cookie,
  "Storage.setCookies.cookies.domain": cookie,
  "Storage.setCookies.cookies.sourcePort": cookie,
};

/** Refused commands, and the refused parameters of others, by command. */
const refusals = new Map<string, { readonly param?: string; readonly because: string }[]>();
for (const [name, { is, because }] of Object.entries(egressTable)) {
  const [domain, command, param, ...deeper] = name.split(".");
  if (is === "harmless" || deeper.length > 0) continue;
  const method = `${domain}.${command}`;
  refusals.set(method, [...(refusals.get(method) ?? []), { because, ...(param !== undefined && { param }) }]);
}

/** Keeps clients from sending the browser past its proxy, on whichever session they ask. */
export const egressRules: Rule = ({ method, params }) => {
  for (const { param, because } of refusals.get(method) ?? []) {
    if (param === undefined) return refuseCommand(`${method} is refused: ${because}`);
    // The parameter is refused whatever its type or value: even null, which Chromium takes for a fault today.
    if (Object.hasOwn(params, param)) return refuseCommand(`${param} is refused: ${because}`);
  }
  return pass;
};
