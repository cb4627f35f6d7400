import { expect, test } from "vitest";
import type { Detail } from "../../../src/base/errors.js";
import { managedPolicy } from "../../../src/browser/policy/managed-policy.js";
import { checkPolicy } from "../../../src/spec/policies/policy-checks.js";

/** Written out, so that a line that goes from the source goes from here as well, with its reason. */
const pinned = {
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
  AllowFileSelectionDialogs: false,
  PolicyTestPageEnabled: false,
  BackgroundModeEnabled: true,
  CommandLineFlagSecurityWarningsEnabled: false,
  WebRtcIPHandling: "disable_non_proxied_udp",
  QuicAllowed: false,
  DnsOverHttpsMode: "off",
  BuiltInDnsClientEnabled: false,
  EnableMediaRouter: false,
  ProxySettings: {
    ProxyMode: "fixed_servers",
    ProxyServer: "http://127.0.0.1:9",
    ProxyBypassList: "<-loopback>",
  },
  ExtensionSettings: {
    "*": {
      allowed_types: ["extension", "theme"],
      blocked_permissions: ["proxy", "privacy", "debugger", "nativeMessaging", "dns"],
    },
  },
};
const theirs = Object.fromEntries(Object.keys(pinned).map((name) => [name, "theirs"]));
const egress = { proxyUrl: "http://127.0.0.1:9" };

test("each policy that is pinned stays, whatever a caller's says", () => {
  const made = managedPolicy({ policy: { ...theirs, HomepageLocation: "https://a.example/" }, egress });
  expect(made).toMatchObject({ ...pinned, HomepageLocation: "https://a.example/" });
  expect(JSON.stringify(made)).not.toContain("theirs");
});

test("no caller may set one of them", () => {
  const faults: Detail[] = [];
  checkPolicy(faults, theirs);
  for (const name of Object.keys(pinned))
    expect(faults).toContainEqual(
      expect.objectContaining({ message: expect.stringMatching(`^browser_policy.${name}: is managed`) }),
    );
});

test("an extension that policy installs is given no permission that is blocked for all", () => {
  const forced = { id: "a".repeat(32), updateUrl: "file:///update.xml" };
  expect(managedPolicy({ egress }, [forced])).toMatchObject({
    ExtensionSettings: {
      "*": pinned.ExtensionSettings["*"],
      [forced.id]: {
        installation_mode: "force_installed",
        blocked_permissions: pinned.ExtensionSettings["*"].blocked_permissions,
      },
    },
  });
});
