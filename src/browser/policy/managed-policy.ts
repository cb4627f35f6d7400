import type { LaunchSpec } from "../chromium.js";

type ManagedPolicy = Readonly<Record<string, unknown>>;

/** Keeps a browser that nobody looks at from asking questions; a caller's own policy may change these. */
const defaultPolicy: ManagedPolicy = {
  BrowserSignin: 0,
  DefaultBrowserSettingEnabled: false,
  MetricsReportingEnabled: false,
  // Chromium's own page of new tabs is among those that are closed.
  NewTabPageLocation: "about:blank",
  PasswordManagerEnabled: false,
  PromotionsEnabled: false,
  SearchSuggestEnabled: false,
  SyncDisabled: true,
  TranslateEnabled: false,
};

/**
 * The defaults of a browser that has several holders, one after the other: which certificates the first has
 * accepted on a warning's page Chromium would remember for a week, and no command makes it forget.
 */
const sharedPolicy: ManagedPolicy = { SSLErrorOverrideAllowed: false };

/** A caller's policy lets people pass warnings of certificates, which is remembered. */
export const letsAcceptCertificates = ({ policy }: Pick<LaunchSpec, "policy">): boolean => {
  const { SSLErrorOverrideAllowed: everywhere, SSLErrorOverrideAllowedForOrigins: origins } = policy ?? {};
  return everywhere === true || (Array.isArray(origins) && origins.length > 0);
};

/**
 * `debugger` commands pass no gate, and its Target.setRemoteLocations has the browser dial any address
 * itself, past the proxy (Chromium 156, docs/chromium.md#ways-past-the-proxy). A native host is a program
 * outside the browser. The others change proxy, WebRTC or look up names.
 */
export const blockedPermissions: readonly string[] = [
  "proxy",
  "privacy",
  "debugger",
  "nativeMessaging",
  "dns",
];

const ofAllExtensions: ManagedPolicy = {
  // An app has `chrome.sockets`, TCP and UDP without the proxy, and still loads on Linux; blocking a
  // permission of that name changes nothing (Chromium 156, docs/chromium.md#ways-past-the-proxy).
  allowed_types: ["extension", "theme"],
  blocked_permissions: blockedPermissions,
};

/**
 * What no caller may change: src/spec/policies/managed-policies.ts refuses each of these names. What closes
 * the host's files and Chromium's own pages comes first. Nothing here may touch remote debugging: with
 * `RemoteDebuggingAllowed` false there is no CDP at all, and the browser survives the end of its pipe
 * (docs/chromium.md#the-pipe).
 */
const pinnedPolicy: ManagedPolicy = {
  // "*" closes every address that is not allowed: otherwise programs of the host start by other schemes,
  // `mailto:` without being asked (Chromium 156, docs/chromium.md#ways-past-the-proxy). The named ones are
  // pages of Chromium's own, which "*" leaves open; behind `view-source:` the inner address is judged.
  URLBlocklist: [
    "*",
    "file://*",
    "chrome://*",
    "chrome-untrusted://*",
    "chrome-search://*",
    "chrome-native://*",
    "devtools://*",
  ],
  URLAllowlist: [
    "http://*",
    "https://*",
    "about:*",
    "data:*",
    "blob:*",
    "filesystem:*",
    "javascript:*",
    "view-source:*",
    "chrome-extension://*",
  ],
  // Its dialogs show files of the host. Clients intercept file choosers before them.
  AllowFileSelectionDialogs: false,
  // chrome://policy/test replaces the policies of a running browser, so a CDP client could undo the lines
  // above.
  PolicyTestPageEnabled: false,
  // `--keep-alive-for-test` alone does not hold a headful browser reliably: 5 of 60 exited (Chromium 156,
  // docs/chromium.md#enterprise-policy).
  BackgroundModeEnabled: true,
  // Our own switches would make headful Chromium show a bar that takes 56 pixels from the page (Chromium 156,
  // docs/chromium.md#enterprise-policy).
  CommandLineFlagSecurityWarningsEnabled: false,
  // What follows closes ways round the proxy, for a browser without one too
  // (docs/chromium.md#ways-past-the-proxy).
  WebRtcIPHandling: "disable_non_proxied_udp",
  QuicAllowed: false,
  DnsOverHttpsMode: "off",
  BuiltInDnsClientEnabled: false,
  // The media router looks for receivers by multicast.
  EnableMediaRouter: false,
};

/**
 * Holds a browser to its proxy whatever an extension asks for; only this beats `chrome.proxy`
 * (docs/chromium.md#ways-past-the-proxy).
 */
const proxyPolicy = (proxyUrl: string): ManagedPolicy => ({
  ProxySettings: { ProxyMode: "fixed_servers", ProxyServer: proxyUrl, ProxyBypassList: "<-loopback>" },
});

/** An extension that policy installs from a file, since it asks for what only policy grants. */
export interface ForcedEntry {
  readonly id: string;
  /** `file:` URL of an update manifest that names the packed extension. */
  readonly updateUrl: string;
}

/**
 * An extension's own entry replaces the one for all extensions, blocked permissions included (Chromium 156,
 * docs/chromium.md#enterprise-policy).
 */
const forcedSettings = ({ id, updateUrl }: ForcedEntry): readonly [string, ManagedPolicy] => [
  id,
  {
    installation_mode: "force_installed",
    update_url: updateUrl,
    override_update_url: true,
    blocked_permissions: blockedPermissions,
  },
];

/** The policy of a browser: our defaults, over them the caller's, and over both what is pinned. */
export const managedPolicy = (
  { policy, egress, isForOne }: Pick<LaunchSpec, "policy" | "egress" | "isForOne">,
  forced: readonly ForcedEntry[] = [],
): ManagedPolicy => ({
  ...defaultPolicy,
  ...(!isForOne && sharedPolicy),
  ...policy,
  ...pinnedPolicy,
  ...(egress && proxyPolicy(egress.proxyUrl)),
  ExtensionSettings: { "*": ofAllExtensions, ...Object.fromEntries(forced.map(forcedSettings)) },
});
