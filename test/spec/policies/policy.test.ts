import { describe, expect, test } from "vitest";
import type { Detail } from "../../../src/base/errors.js";
import type { PoolCreate, PoolPatch, SessionCreate } from "../../../src/spec/bodies.js";
import { managedPolicies } from "../../../src/spec/policies/managed-policies.js";
import {
  createPoolSpec,
  type SpecDefaults,
  mergePoolSpec,
  createSessionTemplate,
} from "../../../src/pool/merge-spec.js";
import { checkPolicy } from "../../../src/spec/policies/policy-checks.js";
import { policyNames } from "../../../src/spec/policies/policy-table.js";
import { patternsOf } from "../../../src/base/net/hosts.js";

const defaults: SpecDefaults = {
  fillRatePerMinute: 25,
  maxFillRatePerMinute: null,
  engine: "chromium",
  privateHostsCeiling: patternsOf(["0.0.0.0/0", "::/0"]),
};
const told = (policy: Record<string, unknown>): string[] => {
  const faults: Detail[] = [];
  checkPolicy(faults, policy);
  return faults.map(({ message }) => message);
};
const managed = (name: string): string =>
  `browser_policy.${name}: is managed by the service and cannot be overridden`;
const ofUrls = (name: string): string =>
  `browser_policy.${name}: is managed by the service; network.allowed_hosts says what may be reached`;
const unknown = (name: string): string => `browser_policy.${name}: is no policy that Chromium knows`;

test("policies that Chromium knows, with values of their types, are taken", () => {
  const policy = {
    HomepageLocation: "https://a.example",
    BookmarkBarEnabled: true,
    DefaultGeolocationSetting: 2,
    CookiesBlockedForUrls: ["a.example"],
    PrintingPaperSizeDefault: { name: "iso_a4_210x297mm" },
    PasswordManagerEnabled: true,
    RestoreOnStartup: 5,
    SafeBrowsingEnabled: false,
  };
  expect(told(policy)).toEqual([]);
});

test("every fault is told at once: a managed name, an unknown one, a value of another type", () => {
  const policy = {
    ExtensionSettings: {},
    NoSuchPolicy: 1,
    BookmarkBarEnabled: "yes",
    DefaultGeolocationSetting: 1.5,
    HomepageLocation: null,
    URLBlocklist: [],
  };
  expect(told(policy)).toEqual([
    managed("ExtensionSettings"),
    unknown("NoSuchPolicy"),
    "browser_policy.BookmarkBarEnabled: must be a boolean",
    "browser_policy.DefaultGeolocationSetting: must be an integer of 32 bits",
    "browser_policy.HomepageLocation: must be a string",
    ofUrls("URLBlocklist"),
  ]);
});

test.each([
  ["BookmarkBarEnabled", 1, "a boolean"],
  ["BookmarkBarEnabled", null, "a boolean"],
  ["IdleDetectionAllowedForUrls", {}, "a list"],
  ["IdleDetectionAllowedForUrls", "a", "a list"],
  ["DefaultGeolocationSetting", true, "an integer of 32 bits"],
  ["DefaultGeolocationSetting", 2 ** 31, "an integer of 32 bits"],
  ["HomepageLocation", 1, "a string"],
  ["WatermarkStyle", [], "a dictionary"],
  ["WatermarkStyle", "{}", "a dictionary"],
  ["WatermarkStyle", null, "a dictionary"],
])("%s may not be %j", (name, value, kind) =>
  expect(told({ [name]: value })).toEqual([`browser_policy.${name}: must be ${kind}`]),
);

test.each(["BrowserSignin", "IncognitoModeAvailability"])(
  "under a %s of 2 no page opens, and it is refused; of 1 it is not",
  (name) => {
    expect([told({ [name]: 2 }), told({ [name]: 1 })]).toEqual([
      [`browser_policy.${name}: must not be 2: no page would open`],
      [],
    ]);
  },
);

test.each([
  "bookmarkBarEnabled",
  " BookmarkBarEnabled",
  "BookmarkBarEnabled ",
  "BookmarkBarEnabled\u0000",
  "proxySettings",
  "ProxySettings\u200b",
  "3rdparty",
  "toString",
  "constructor",
  "",
  "*",
])("no other spelling is taken for a name: %j", (name) => expect(told({ [name]: true })).toHaveLength(1));

test("a name like __proto__ is one as any other", () => {
  expect(told(JSON.parse('{"__proto__":{"ProxySettings":{}}}') as Record<string, unknown>)).toEqual([
    unknown("__proto__"),
  ]);
});

// Refused whether or not this Chromium knows them (docs/extensions-and-profiles.md#enterprise-policy).
test.each([
  "ExtensionSettings",
  "ExtensionInstallForcelist",
  "ExtensionInstallBlocklist",
  "ExtensionInstallBlacklist",
  "ExtensionInstallAllowlist",
  "ExtensionInstallWhitelist",
  "BlockExternalExtensions",
  "ExtensionAllowedTypes",
  "ExtensionInstallSources",
  "ExtensionManifestV2Availability",
  "RemoteDebuggingAllowed",
  "DeveloperToolsAvailability",
  "DeveloperToolsDisabled",
  "ChromeForTestingAllowed",
  "WebDriverOverridesIncompatiblePolicies",
  "ProxySettings",
  "ProxyMode",
  "ProxyServer",
  "ProxyBypassList",
  "ProxyPacUrl",
])("the contract's %s is refused", (name) => expect(told({ [name]: true })).toEqual([managed(name)]));

test.each([
  "ProxyServerMode",
  "ProxyOverrideRules",
  "WebRtcIPHandling",
  "WebRtcIPHandlingUrl",
  "DnsOverHttpsMode",
  "DnsOverHttpsTemplates",
  "QuicAllowed",
  "BuiltInDnsClientEnabled",
  "AdditionalDnsQueryTypesEnabled",
  "AuthServerAllowlist",
  "EnableMediaRouter",
  "MediaRouterCastAllowAllIPs",
  "AccessCodeCastEnabled",
  "DefaultDirectSocketsSetting",
  "DirectSocketsAllowedForUrls",
  "IsolatedWebAppInstallForceList",
  "PolicyTestPageEnabled",
  "PolicyListMultipleSourceMergeList",
  "CloudManagementEnrollmentToken",
  "CloudPolicyOverridesPlatformPolicy",
  "UserDataDir",
  "DiskCacheDir",
  "DownloadDirectory",
  "DefaultDownloadDirectory",
  "PdfLocalFileAccessAllowedForDomains",
  "GSSAPILibraryName",
  "AlternativeBrowserPath",
  "BrowserSwitcherEnabled",
  "NativeMessagingAllowlist",
  "AutoOpenFileTypes",
  "AutoOpenAllowedForURLs",
  "AutoLaunchProtocolsFromOrigins",
  "AudioSandboxEnabled",
  "NetworkServiceSandboxEnabled",
  "ForceEphemeralProfiles",
  "HeadlessMode",
  "BackgroundModeEnabled",
  "CommandLineFlagSecurityWarningsEnabled",
  "RelaunchNotification",
])("%s would undo what holds the browser, and is refused", (name) =>
  expect(told({ [name]: true })).toEqual([managed(name)]),
);

test.each(["URLAllowlist", "URLBlocklist", "URLWhitelist", "URLBlacklist", "DisabledSchemes"])(
  "%s says what may be reached",
  (name) => expect(told({ [name]: [] })).toEqual([ofUrls(name)]),
);

test("each group of managed policies has a name that some Chromium knows, and most policies are a caller's", () => {
  const known = Object.values(policyNames).flat();
  for (const { names, because } of managedPolicies)
    expect([because, known.some((name) => names.test(name))]).toEqual([because, true]);
  const kept = known.filter((name) => managedPolicies.some(({ names }) => names.test(name)));
  expect(kept.length / known.length).toBeLessThan(0.25);
});

test("a policy of more than 5 MiB is refused, of exactly as much is not", () => {
  const wrapped = JSON.stringify({ HomepageLocation: "" }).length;
  expect(told({ HomepageLocation: "x".repeat(5 * 2 ** 20 - wrapped) })).toEqual([]);
  expect(told({ HomepageLocation: "x".repeat(5 * 2 ** 20 - wrapped + 1) })).toEqual([
    `browser_policy: has ${5 * 2 ** 20 + 1} bytes, at most ${5 * 2 ** 20} are allowed`,
  ]);
});

test("the answer to a policy of very many faults stays short", () => {
  const faults = told(
    Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`${"x".repeat(300)}${index}`, 1])),
  );
  expect(faults).toHaveLength(101);
  expect(faults.at(-1)).toBe("browser_policy: has 9900 more faults");
  for (const message of faults) expect(message.length).toBeLessThan(200);
});

describe("WebRTC's own addresses and ports", () => {
  const faultsOf = (
    template: ReturnType<typeof createPoolSpec> | ReturnType<typeof createSessionTemplate>,
  ): unknown[] => (template.kind === "refused" ? (template.details ?? []).map(({ message }) => message) : []);
  const ofPool = (body: Partial<PoolCreate>): unknown[] =>
    faultsOf(createPoolSpec({ size: 1, ...body }, defaults));
  const ofSession = (body: SessionCreate): unknown[] => faultsOf(createSessionTemplate(body, defaults));
  function ofPatch(current: Partial<PoolCreate>, patch: PoolPatch): unknown[] {
    const made = createPoolSpec({ size: 1, ...current }, defaults);
    return made.kind === "done" ? faultsOf(mergePoolSpec(made.value, patch, defaults)) : [made];
  }

  test.each([
    ["WebRtcUdpPortRange", "1-2"],
    ["WebRtcLocalIpsAllowedUrls", ["*"]],
  ])("%s is refused beside allowed_hosts only", (name, value) => {
    const policy = { browser_policy: { [name]: value } };
    const network = { allowed_hosts: ["a.example"] };
    const refused = [`browser_policy.${name}: cannot be combined with network.allowed_hosts`];
    expect(ofPool(policy)).toEqual([]);
    expect(ofPool({ ...policy, network: { private_hosts: [] } })).toEqual([]);
    expect(ofPool({ ...policy, network })).toEqual(refused);
    expect(ofSession({ ...policy, network })).toEqual(refused);
    expect(ofPatch(policy, { network })).toEqual(refused);
    expect(ofPatch({ network }, policy)).toEqual(refused);
  });
  test("another of its policies is not", () => {
    expect(
      ofPool({
        browser_policy: { WebRtcEventLogCollectionAllowed: true },
        network: { allowed_hosts: ["a.example"] },
      }),
    ).toEqual([]);
  });
});
