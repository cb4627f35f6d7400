import { noContent, onePage, type Operation, reply } from "./operation.js";

const proxies = "Proxies";
const extensions = "Extensions";
const profiles = "Profiles";

const proxy = (status: 200 | 201, description: string) => reply(status, "Proxy", description);
const profile = (status: 200 | 201, description: string) => reply(status, "Profile", description);

/** What pools and sessions name: proxies, extensions, profiles. */
export const registryOperations = {
  listProxies: { tag: proxies, summary: "List proxies, newest first", success: onePage("Proxy") },
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
    success: noContent("It is forgotten"),
    failures: ["resource_in_use", "proxy_not_found"],
  },
  checkProxy: {
    tag: proxies,
    summary: "Send a request through a proxy",
    takesBody: true,
    success: proxy(200, "The proxy with what was found: one that carried nothing is unavailable"),
    failures: ["proxy_not_found", "secret_unreadable"],
  },
  listExtensions: {
    tag: extensions,
    summary: "List extensions, newest first",
    success: onePage("Extension"),
  },
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
    success: noContent("It is deleted"),
    failures: ["resource_in_use", "extension_not_found"],
  },
  downloadExtensionFromChromeStore: {
    tag: extensions,
    summary: "Download an extension of the Chrome Web Store as a zip; nothing is registered",
    success: [{ status: 200, description: "The zip", contentType: "application/octet-stream" }],
    failures: ["destination_failed"],
  },
  listProfiles: { tag: profiles, summary: "List profiles, newest first", success: onePage("Profile") },
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
    success: noContent("It is deleted"),
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
} as const satisfies Record<string, Operation>;
