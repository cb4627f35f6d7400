/** Why the commands of a domain are no events: none of them is what somebody who drives a browser does. */
const because = {
  reads: "it reads, and starts and stops what is told of a page",
  tools: "it is for whoever looks into a page with developer tools",
  scripts: "client libraries send it by the hundred for one call of theirs",
  requests: "it is about requests, of which the network's own events tell",
  settings: "it prepares the browser, and does nothing in it",
  simulated: "it is about devices that are only simulated",
  stored: "it is about what sites have stored",
  refused: "it does not go to the browser",
} as const;

/** Domains of which no command is reported. */
export const unreportedDomains: Readonly<Record<string, string>> = {
  Accessibility: because.reads,
  Ads: because.reads,
  Animation: because.tools,
  Audits: because.tools,
  BackgroundService: because.reads,
  BluetoothEmulation: because.simulated,
  CSS: because.tools,
  CacheStorage: because.stored,
  Cast: because.refused,
  Console: because.reads,
  CrashReportContext: because.reads,
  DOMDebugger: because.tools,
  DOMSnapshot: because.reads,
  DOMStorage: because.stored,
  Debugger: because.tools,
  DeviceAccess: because.simulated,
  DeviceOrientation: because.simulated,
  DigitalCredentials: because.simulated,
  Emulation: because.settings,
  EventBreakpoints: because.tools,
  Extensions: because.settings,
  FedCm: because.simulated,
  Fetch: because.requests,
  FileSystem: because.stored,
  FindInPage: because.reads,
  HeadlessExperimental: because.tools,
  HeapProfiler: because.tools,
  IO: because.reads,
  IndexedDB: because.stored,
  Inspector: because.reads,
  LayerTree: because.tools,
  Log: because.reads,
  Media: because.reads,
  Memory: because.tools,
  Network: because.requests,
  Overlay: because.tools,
  PWA: because.refused,
  Performance: because.tools,
  PerformanceTimeline: because.tools,
  Preload: because.requests,
  Profiler: because.tools,
  Runtime: because.scripts,
  Schema: because.reads,
  Security: because.requests,
  ServiceWorker: because.stored,
  SmartCardEmulation: because.simulated,
  Storage: because.stored,
  SystemInfo: because.reads,
  Tethering: because.refused,
  Tracing: because.tools,
  WebAudio: because.tools,
  WebAuthn: because.simulated,
  WebMCP: because.scripts,
};

const words = (text: string): readonly string[] => text.trim().split(/\s+/);

/** Commands that are not reported, of domains of which others are. */
export const unreportedCommands: Readonly<
  Record<string, { readonly because: string; readonly commands: readonly string[] }>
> = {
  Autofill: {
    because: "it prepares what Autofill.trigger fills in",
    commands: words(`
      disable enable setAddresses
    `),
  },
  Browser: {
    because: "it reads or sets what holds for the whole browser",
    commands: words(`
      addMockCamera addPrivacySandboxEnrollmentOverride crash crashGpuProcess
      executeBrowserCommand getBrowserCommandLine getGlobalPrivacyControl getHistogram
      getHistograms getVersion getWindowBounds getWindowForTarget grantPermissions
      resetPermissions setDockTile setDownloadBehavior setGlobalPrivacyControl setPermission
    `),
  },
  DOM: {
    because: "it looks at a document or alters it, as client libraries and developer tools do all the time",
    commands: words(`
      clearTextMarkers collectClassNamesFromSubtree copyTo describeNode disable
      discardSearchResults enable forceShowInterest forceShowPopover getAnchorElement
      getAttributes getBoxModel getContainerForNode getContentQuads getDetachedDomNodes
      getDocument getElementByRelation getFileInfo getFlattenedDocument getFrameOwner
      getImplicitAnchorCandidates getNodeForLocation getNodeStackTraces
      getNodesForSubtreeByStyle getOuterHTML getQueryingDescendantsForContainer
      getRelayoutBoundary getSearchResults getTopLayerElements hideHighlight highlightNode
      highlightRect markUndoableState moveTo performSearch pushNodeByPathToFrontend
      pushNodesByBackendIdsToFrontend querySelector querySelectorAll redo removeAttribute
      removeNode requestChildNodes requestNode resolveNode setAttributeValue
      setAttributesAsText setInspectedNode setNodeName setNodeStackTracesEnabled setNodeValue
      setOuterHTML setTextMarker undo
    `),
  },
  Input: {
    because: "it prepares what other commands of the domain do",
    commands: words(`
      setIgnoreInputEvents setInterceptDrags
    `),
  },
  Page: {
    because: "it reads, prepares or simulates, and does nothing that somebody at the screen would do",
    commands: words(`
      addCompilationCache addScriptToEvaluateOnLoad addScriptToEvaluateOnNewDocument
      clearCompilationCache clearDeviceMetricsOverride clearDeviceOrientationOverride
      clearGeolocationOverride crash createIsolatedWorld deleteCookie disable enable
      generateTestReport getAdScriptAncestry getAnnotatedPageContent getAppId getAppManifest
      getFrameTree getInstallabilityErrors getLayoutMetrics getManifestIcons
      getNavigationHistory getOriginTrials getPermissionsPolicyState getResourceContent
      getResourceTree getSiblingSubApps getSpellCheckCustomDictionary getSubApps
      produceCompilationCache removeScriptToEvaluateOnLoad removeScriptToEvaluateOnNewDocument
      resetNavigationHistory screencastFrameAck searchInResource setAdBlockingEnabled
      setBypassCSP setDeviceMetricsOverride setDeviceOrientationOverride setDocumentContent
      setDownloadBehavior setFontFamilies setFontSizes setGeolocationOverride
      setInputVisualization setInterceptFileChooserDialog setLifecycleEventsEnabled
      setPrerenderingAllowed setRPHRegistrationMode setSPCTransactionMode
      setTouchEmulationEnabled startScreenRecording stopScreenRecording waitForDebugger
    `),
  },
  Target: {
    because: "it looks for targets and opens sessions with them, which client libraries do by themselves",
    commands: words(`
      attachToBrowserTarget attachToTarget autoAttachRelated detachFromTarget
      exposeDevToolsProtocol getBrowserContexts getDevToolsTarget getTargetInfo getTargets
      sendMessageToTarget setAutoAttach setDiscoverTargets setRemoteLocations
    `),
  },
};
