/**
 * How many parts the name of a file may have. Chromium's have fewer, and paths of so many are still far from
 * too long.
 */
export const mostParts = 24;

/**
 * Parts of a user-data directory that are not state: nothing that a page, an extension or a person would miss
 * (names seen in Chromium 156). Service Worker/ScriptCache and CacheStorage are caches by name only: a site
 * that works offline works from them.
 */
const caches = [
  "Cache",
  "Code Cache",
  "GPUCache",
  "DawnCache",
  "DawnGraphiteCache",
  "DawnWebGPUCache",
  "GraphiteDawnCache",
  "GrShaderCache",
  "ShaderCache",
  "GPUPersistentCache",
  "Shared Dictionary",
  "Media Cache",
  "AutofillAiModelCache",
  "extensions_crx_cache",
  "component_crx_cache",
];

/** These belong to one process, or to the pages that were open in it. */
const passing = [
  "lockfile",
  "LOCK",
  "LOG",
  "LOG.old",
  "RunningChromeVersion",
  "DevToolsActivePort",
  "blob_storage",
  "Sessions",
  "Sessions_Encrypted",
  "Session Storage",
];

/** What Chromium reports to its makers, or predicts from what it has seen. */
const metrics = [
  "BrowserMetrics",
  "BrowserMetrics-spare.pma",
  "CrashpadMetrics.pma",
  "CrashpadMetrics-active.pma",
  "DeferredBrowserMetrics",
  "Crashpad",
  "Crash Reports",
  "segmentation_platform",
  "Segmentation Platform",
  "shared_proto_db",
  "Network Action Predictor",
  "heavy_ad_intervention_opt_out.db",
  "declarative_performance_observer.db",
  "Reporting and NEL",
  "SCT Auditing Pending Reports",
  "Site Characteristics Database",
  "Feature Engagement Tracker",
  "Sync Data",
  "Last Version",
  "Variations",
];

/**
 * Chromium downloads these for itself. A browser that lacks one does not fetch it here, and one that finds it
 * would treat it as new.
 */
const components = [
  "Safe Browsing",
  "optimization_guide_hint_cache_store",
  "optimization_guide_model_store",
  "optimization_guide_prediction_model_downloads",
  "OptimizationGuidePredictionModels",
  "OptimizationGuideModelsManifest",
  "OptimizationHints",
  "OnDeviceHeadSuggestModel",
  "OptGuideOnDeviceModel",
  "WidevineCdm",
  "CertificateRevocation",
  "PKIMetadata",
  "SSLErrorAssistant",
  "FileTypePolicies",
  "Subresource Filter",
  "SafetyTips",
  "Crowd Deny",
  "MEIPreload",
  "OriginTrials",
  "TrustTokenKeyCommitments",
  "ZxcvbnData",
  "FirstPartySetsPreloaded",
  "PrivacySandboxAttestationsPreloaded",
  "CookieReadinessList",
  "TpcdMetadata",
  "AmountExtractionHeuristicRegexes",
  "hyphen-data",
  "screen_ai",
  "RecoveryImproved",
  "component_updater",
];

/** This names programs of the host that a page of an extension may start. */
const dangerous = ["NativeMessagingHosts"];

const leftOut = new Set([...caches, ...passing, ...metrics, ...components, ...dangerous]);

/**
 * Files of one process (`SingletonLock`, `.org.chromium.Chromium.XXXXXX`), or what a broken write has left.
 */
const leftOutPattern = /^Singleton|^\.(org\.chromium|com\.google)\.|\.tmp$|\.pma$/;

/**
 * A rollback journal that holds something belongs to its database: without it a half-written change could not
 * be undone.
 */
const isEmptyJournal = (name: string, sizeBytes: number): boolean =>
  sizeBytes === 0 && name.endsWith("-journal");

/** True where a file or directory of this name, wherever it lies, belongs into a saved profile. */
export const isState = (name: string): boolean =>
  !leftOut.has(name.replace(/-(journal|wal|shm)$/, "")) && !leftOutPattern.test(name);

export const isStateFile = (name: string, sizeBytes: number): boolean =>
  isState(name) && !isEmptyJournal(name, sizeBytes);
