import { noContent, onePage, type Operation, reply } from "./operation.js";

const pools = "Browser pools";
const browsers = "Browsers";

const pool = (status: 200 | 201, description: string) => reply(status, "BrowserPool", description);
const session = (description: string) => reply(200, "BrowserSession", description);

/** Pools, and the browsers that are lent from them or launched on demand. */
export const lendingOperations = {
  listBrowserPools: { tag: pools, summary: "List pools", success: onePage("BrowserPool") },
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
      "pool_not_found",
      "name_taken",
      "conflict",
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
    success: noContent("It is deleted"),
    failures: ["pool_in_use", "pool_not_found", "conflict"],
  },
  listPoolBrowsers: {
    tag: pools,
    summary: "List every browser of a pool with its state",
    success: [{ status: 200, description: "The browsers", component: "PoolBrowser", isList: true }],
    failures: ["pool_not_found"],
  },
  listPoolFlightRecordings: {
    tag: pools,
    summary:
      "Read what the pool's browsers had recorded that ended by a fault or did not launch: the 20 newest",
    success: [{ status: 200, description: "The recordings", component: "FlightRecording", isList: true }],
    failures: ["pool_not_found"],
  },
  acquireBrowser: {
    tag: pools,
    summary: "Lease a browser of a pool, waiting for one if need be",
    takesBody: true,
    success: [...session("The leased browser"), ...noContent("None became free in time: ask again")],
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
    success: noContent("Its lease is over"),
    failures: ["pool_not_found", "browser_not_found", "lease_superseded", "conflict"],
  },
  flushBrowserPool: {
    tag: pools,
    summary: "Retire every idle browser of a pool; new ones take their place",
    takesBody: true,
    success: noContent("They are retired"),
    failures: ["pool_not_found", "conflict"],
  },
  listBrowsers: {
    tag: browsers,
    summary: "List on-demand and leased browsers",
    success: onePage("BrowserSession"),
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
      "rate_limit_exceeded",
      "too_many_sessions",
      "launch_failed",
      "draining",
      "capacity_exhausted",
    ],
  },
  getBrowser: {
    tag: browsers,
    summary: "Read a session",
    success: session("The session"),
    failures: ["browser_not_found"],
  },
  getFlightRecording: {
    tag: browsers,
    summary: "Read the last of what happened in a browser, while it runs or where it ended by a fault",
    success: [{ status: 200, description: "The recording", component: "FlightRecording" }],
    failures: ["not_found", "browser_not_found", "lease_superseded", "browser_gone", "node_silent"],
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
    success: noContent("It is over"),
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
      "conflict",
      "node_silent",
    ],
  },
} as const satisfies Record<string, Operation>;
