import { about } from "./operation.js";

const pools = "Browser pools";
const browsers = "Browsers";
const proxies = "Proxies";
const extensions = "Extensions";
const profiles = "Profiles";
const health = "Health";

const pool = (status: 200 | 201, description: string) =>
  [{ status, description, component: "BrowserPool" }] as const;
const session = (description: string) => [{ status: 200, description, component: "BrowserSession" }] as const;
const proxy = (status: 200 | 201, description: string) =>
  [{ status, description, component: "Proxy" }] as const;
const profile = (status: 200 | 201, description: string) =>
  [{ status, description, component: "Profile" }] as const;
const page = (component: string) =>
  [
    { status: 200, description: "One page; its headers tell where the next begins", component, isList: true },
  ] as const;
const nothing = (description: string) => [{ status: 204, description }] as const;
const status = (description: string) => [{ status: 200, description, component: "Status" }] as const;

/**
 * What every operation is called, answers and refuses; the key is its operationId in the OpenAPI document.
 */
export const operations = about({
  listBrowserPools: { tag: pools, summary: "List pools", success: page("BrowserPool") },
  createBrowserPool: {
    tag: pools,
    summary: "Create a pool and begin to fill it",
    takesBody: true,
    success: pool(201, "The new pool"),
    failures: [
      "not_supported",
      "idempotency_mismatch",
      "insufficient_plan",
      "limit_exceeded",
      "name_taken",
      "conflict",
      "lease_ended",
    ],
  },
  getBrowserPool: {
    tag: pools,
    summary: "Read a pool",
    success: pool(200, "The pool"),
    failures: ["pool_not_found"],
  },
  updateBrowserPool: {
    tag: pools,
    summary: "Change a pool's configuration",
    takesBody: true,
    success: pool(200, "The pool as it is now"),
    failures: [
      "not_supported",
      "insufficient_plan",
      "limit_exceeded",
      "pool_not_found",
      "name_taken",
      "stale_network",
      "conflict",
    ],
  },
  deleteBrowserPool: {
    tag: pools,
    summary: "Delete a pool",
    takesBody: true,
    success: nothing("It is deleted"),
    failures: ["pool_in_use", "pool_not_found", "conflict"],
  },
  listPoolBrowsers: {
    tag: pools,
    summary: "List every browser of a pool with its state",
    success: [{ status: 200, description: "The browsers", component: "PoolBrowser", isList: true }],
    failures: ["pool_not_found"],
  },
  acquireBrowser: {
    tag: pools,
    summary: "Lease a browser of a pool, waiting for one if need be",
    takesBody: true,
    success: [...session("The leased browser"), ...nothing("None became free in time: ask again")],
    failures: [
      "not_supported",
      "idempotency_mismatch",
      "insufficient_plan",
      "pool_not_found",
      "name_taken",
      "lease_ended",
      "conflict",
      "too_many_waiters",
    ],
  },
  releaseBrowser: {
    tag: pools,
    summary: "Give a leased browser back",
    takesBody: true,
    success: nothing("Its lease is over"),
    failures: ["pool_not_found", "browser_not_found", "lease_superseded", "conflict"],
  },
  flushBrowserPool: {
    tag: pools,
    summary: "Retire every idle browser of a pool; new ones take their place",
    takesBody: true,
    success: nothing("They are retired"),
    failures: ["pool_not_found"],
  },
  listBrowsers: {
    tag: browsers,
    summary: "List on-demand and leased browsers",
    success: page("BrowserSession"),
  },
  createBrowser: {
    tag: browsers,
    summary: "Launch a browser on demand",
    takesBody: true,
    success: session("The running browser"),
    failures: [
      "not_supported",
      "idempotency_mismatch",
      "insufficient_plan",
      "limit_exceeded",
      "name_taken",
      "lease_ended",
      "conflict",
      "too_many_sessions",
      "launch_failed",
      "capacity_exhausted",
    ],
  },
  getBrowser: {
    tag: browsers,
    summary: "Read a session",
    success: session("The session"),
    failures: ["browser_not_found"],
  },
  updateBrowser: {
    tag: browsers,
    summary: "Change a session while it runs",
    takesBody: true,
    success: session("The session as it is now"),
    failures: [
      "not_supported",
      "insufficient_plan",
      "browser_not_found",
      "name_taken",
      "lease_superseded",
      "profile_loaded",
      "conflict",
      "launch_failed",
      "node_unreachable",
      "node_silent",
    ],
  },
  deleteBrowser: {
    tag: browsers,
    summary: "End a session",
    takesBody: true,
    success: nothing("It is over"),
    failures: ["browser_not_found", "lease_superseded", "conflict"],
  },
  curlBrowser: {
    tag: browsers,
    summary: "Send a request through a browser's own way out: under its rules, by its proxy, into its counts",
    takesBody: true,
    success: [
      {
        status: 200,
        description: "What the destination answered; redirects are not followed",
        component: "CurlResponse",
      },
    ],
    failures: [
      "egress_denied",
      "browser_not_found",
      "lease_superseded",
      "browser_gone",
      "too_many_requests",
      "destination_failed",
      "node_unreachable",
      "node_silent",
    ],
  },
  addBrowserExtensions: {
    tag: browsers,
    summary: "Load unpacked extensions into a running browser: all of them, or none",
    takesParts: true,
    success: [
      {
        status: 201,
        description: "They are in force; the browser has restarted where it had to, under the same URLs",
      },
    ],
    failures: [
      "not_supported",
      "browser_not_found",
      "lease_superseded",
      "browser_gone",
      "extension_failed",
      "node_silent",
    ],
  },
  listProxies: { tag: proxies, summary: "List proxies, newest first", success: page("Proxy") },
  createProxy: {
    tag: proxies,
    summary: "Register a proxy that browsers can be sent through",
    takesBody: true,
    success: proxy(201, "The new proxy"),
    failures: ["not_supported", "limit_exceeded"],
  },
  getProxy: {
    tag: proxies,
    summary: "Read a proxy",
    success: proxy(200, "The proxy"),
    failures: ["proxy_not_found"],
  },
  updateProxy: {
    tag: proxies,
    summary: "Call a proxy otherwise",
    takesBody: true,
    success: proxy(200, "The proxy as it is now"),
    failures: ["proxy_not_found"],
  },
  deleteProxy: {
    tag: proxies,
    summary: "Forget a proxy; browsers that go through it keep it",
    takesBody: true,
    success: nothing("It is forgotten"),
    failures: ["resource_in_use", "proxy_not_found"],
  },
  checkProxy: {
    tag: proxies,
    summary: "Send a request through a proxy",
    takesBody: true,
    success: proxy(200, "The proxy with what was found: one that carried nothing is unavailable"),
    failures: ["proxy_not_found", "secret_unreadable"],
  },
  listExtensions: { tag: extensions, summary: "List extensions, newest first", success: page("Extension") },
  uploadExtension: {
    tag: extensions,
    summary: "Upload an extension that pools and sessions can name",
    takesBody: true,
    success: [{ status: 201, description: "The new extension", component: "Extension" }],
    failures: ["limit_exceeded", "name_taken"],
  },
  getExtension: {
    tag: extensions,
    summary: "Read what is known of an extension",
    success: [{ status: 200, description: "The extension", component: "Extension" }],
    failures: ["extension_not_found"],
  },
  downloadExtension: {
    tag: extensions,
    summary: "Download an extension's archive as it was uploaded",
    success: [{ status: 200, description: "The zip", contentType: "application/octet-stream" }],
    failures: ["extension_not_found", "archive_missing"],
  },
  deleteExtension: {
    tag: extensions,
    summary: "Delete an extension; browsers that have it keep it",
    takesBody: true,
    success: nothing("It is deleted"),
    failures: ["resource_in_use", "extension_not_found"],
  },
  downloadExtensionFromChromeStore: {
    tag: extensions,
    summary: "Download an extension of the Chrome Web Store as a zip; nothing is registered",
    success: [{ status: 200, description: "The zip", contentType: "application/octet-stream" }],
    failures: ["destination_failed"],
  },
  listProfiles: { tag: profiles, summary: "List profiles, newest first", success: page("Profile") },
  createProfile: {
    tag: profiles,
    summary: "Create a profile that sessions can start from and save to",
    takesBody: true,
    success: profile(201, "The new profile; nothing is saved in it yet"),
    failures: ["limit_exceeded", "name_taken"],
  },
  getProfile: {
    tag: profiles,
    summary: "Read a profile",
    success: profile(200, "The profile"),
    failures: ["profile_not_found"],
  },
  updateProfile: {
    tag: profiles,
    summary: "Call a profile otherwise",
    takesBody: true,
    success: profile(200, "The profile as it is now"),
    failures: ["profile_not_found", "name_taken"],
  },
  deleteProfile: {
    tag: profiles,
    summary: "Delete a profile and what is saved in it; sessions that started from it go on",
    takesBody: true,
    success: nothing("It is deleted"),
    failures: ["resource_in_use", "profile_not_found"],
  },
  downloadProfile: {
    tag: profiles,
    summary: "Download what was saved last: a tar of the user-data directory, compressed with zstd",
    success: [
      { status: 200, description: "The archive", contentType: "application/octet-stream" },
      { status: 202, description: "Nothing was saved yet" },
    ],
    failures: ["profile_not_found", "secret_unreadable", "archive_missing"],
  },
  getAuthContext: {
    tag: "Authentication",
    summary: "Tell who the request is from and what it may reach",
    success: [{ status: 200, description: "The request's identity", component: "AuthContext" }],
  },
  getHealth: {
    tag: health,
    summary: "Tell whether the process answers",
    isOpen: true,
    success: status("It does"),
  },
  getReadiness: {
    tag: health,
    summary: "Tell whether requests should be sent here",
    isOpen: true,
    success: status("They should"),
    failures: ["unavailable"],
  },
  getMetrics: {
    tag: health,
    summary:
      "Read the metrics in Prometheus's text format; no key is needed on a loopback address by a loopback name",
    success: [{ status: 200, description: "The metrics", contentType: "text/plain" }],
  },
});
