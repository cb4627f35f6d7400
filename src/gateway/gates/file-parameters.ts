/**
 * How a parameter that may name a file or an address is treated.
 *
 * - `reads`: Chromium reads the files named; they have to lie in the browser's own directories.
 * - `downloads`: a directory Chromium writes to.
 * - `opens`: a URL that Chromium loads for the client; `file:` is refused.
 * - `harmless`: names no file of the host and loads nothing.
 */
export type FileParameterKind = "reads" | "downloads" | "opens" | "harmless";

/**
 * Every command parameter whose name speaks of a path, file, directory or address, nested ones by a dotted
 * path. A test holds this list against the protocol types of the installed playwright-core.
 */
export const fileParams: Readonly<Record<string, FileParameterKind>> = {
  "Browser.setDownloadBehavior.downloadPath": "downloads",
  "Page.setDownloadBehavior.downloadPath": "downloads",

  "DOM.setFileInputFiles.files": "reads",
  "Extensions.loadUnpacked.path": "reads",
  "Input.dispatchDragEvent.data.files": "reads",
  "PWA.launchFilesInApp.files": "reads",

  "Fetch.continueRequest.url": "opens",
  "Network.loadNetworkResource.url": "opens",
  "PWA.install.installUrlOrBundleUrl": "opens",
  "PWA.launch.url": "opens",
  "Page.getResourceContent.url": "opens",
  "Page.navigate.url": "opens",
  "Page.searchInResource.url": "opens",
  "Target.createTarget.url": "opens",

  "Browser.addPrivacySandboxEnrollmentOverride.url": "harmless",
  "CacheStorage.requestCacheNames.securityOrigin": "harmless",
  "CacheStorage.requestCachedResponse.requestURL": "harmless",
  "CacheStorage.requestEntries.pathFilter": "harmless",
  "Cast.enable.presentationUrl": "harmless",
  "DOM.pushNodeByPathToFrontend.path": "harmless",
  "DOMDebugger.removeXHRBreakpoint.url": "harmless",
  "DOMDebugger.setXHRBreakpoint.url": "harmless",
  "DOMStorage.clear.storageId.securityOrigin": "harmless",
  "DOMStorage.getDOMStorageItems.storageId.securityOrigin": "harmless",
  "DOMStorage.removeDOMStorageItem.storageId.securityOrigin": "harmless",
  "DOMStorage.setDOMStorageItem.storageId.securityOrigin": "harmless",
  "Debugger.setBreakpointByUrl.url": "harmless",
  "Debugger.setBreakpointByUrl.urlRegex": "harmless",
  "FedCm.openUrl.accountUrlType": "harmless",
  "Fetch.enable.patterns.urlPattern": "harmless",
  "FileSystem.getDirectory.bucketFileSystemLocator": "harmless",
  "FileSystem.getDirectory.bucketFileSystemLocator.pathComponents": "harmless",
  "IndexedDB.clearObjectStore.securityOrigin": "harmless",
  "IndexedDB.deleteDatabase.securityOrigin": "harmless",
  "IndexedDB.deleteObjectStoreEntries.securityOrigin": "harmless",
  "IndexedDB.getMetadata.securityOrigin": "harmless",
  "IndexedDB.requestData.securityOrigin": "harmless",
  "IndexedDB.requestDatabase.securityOrigin": "harmless",
  "IndexedDB.requestDatabaseNames.securityOrigin": "harmless",
  "Input.dispatchDragEvent.data.items.baseURL": "harmless",
  "Network.deleteCookies.path": "harmless",
  "Network.deleteCookies.url": "harmless",
  "Network.emulateNetworkConditionsByRule.matchedNetworkConditions.urlPattern": "harmless",
  "Network.enable.reportDirectSocketTraffic": "harmless",
  "Network.getCookies.urls": "harmless",
  "Network.setBlockedURLs.urlPatterns": "harmless",
  "Network.setBlockedURLs.urlPatterns.urlPattern": "harmless",
  "Network.setBlockedURLs.urls": "harmless",
  "Network.setCookie.path": "harmless",
  "Network.setCookie.url": "harmless",
  "Network.setCookies.cookies.path": "harmless",
  "Network.setCookies.cookies.url": "harmless",
  "PWA.changeAppUserSettings.linkCapturing": "harmless",
  "Page.addCompilationCache.url": "harmless",
  "Page.createIsolatedWorld.contentSecurityPolicy": "harmless",
  "Page.deleteCookie.url": "harmless",
  "Page.enable.enableFileChooserOpenedEvent": "harmless",
  "Page.produceCompilationCache.scripts.url": "harmless",
  "Runtime.compileScript.sourceURL": "harmless",
  "ServiceWorker.skipWaiting.scopeURL": "harmless",
  "ServiceWorker.startWorker.scopeURL": "harmless",
  "ServiceWorker.unregister.scopeURL": "harmless",
  "ServiceWorker.updateRegistration.scopeURL": "harmless",
  "Storage.setCookies.cookies.path": "harmless",
  "Storage.setCookies.cookies.url": "harmless",
};
