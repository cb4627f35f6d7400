/**
 * Policies that a caller may not set, and why. Some of the names are known only to other versions of
 * Chromium.
 */
interface Managed {
  readonly names: RegExp;
  readonly because: string;
}

const named = (because: string, ...names: readonly string[]): Managed => ({
  because,
  names: new RegExp(`^(?:${names.join("|")})$`),
});

/** These would replace our own list and open `file:` again. What may be reached is set by the allowlist. */
export const urlPolicies = /^(?:URL(?:Allowlist|Blocklist|Whitelist|Blacklist)|DisabledSchemes)$/;

/**
 * Values under which no page opens, because one has to sign in first or only incognito windows are allowed
 * (Chromium 156, docs/chromium.md#enterprise-policy).
 */
export const barringValues: ReadonlyMap<string, unknown> = new Map([
  ["BrowserSignin", 2],
  ["IncognitoModeAvailability", 2],
]);

/**
 * The service itself sets extensions, the proxy, DevTools and automation
 * (docs/extensions-and-profiles.md#enterprise-policy); the other policies here keep those in force.
 */
export const managedPolicies: readonly Managed[] = [
  named(
    "Extensions are loaded by the service, and kept from what leads past the proxy.",
    "Extension.*",
    "BlockExternalExtensions",
    "MandatoryExtensionsForIncognitoNavigation",
  ),
  named(
    "The service reaches a browser by remote debugging, in the mode it was launched in.",
    "RemoteDebuggingAllowed",
    "DeveloperTools.*",
    "DevTools.*",
    "ChromeForTestingAllowed",
    "WebDriver.*",
    "HeadlessMode",
  ),
  named(
    "The egress proxy is the only way out.",
    "Proxy.*",
    "EnableProxyOverrideRulesForAllUsers",
    "WPADQuickCheckEnabled",
  ),
  named("WebRTC and QUIC send UDP, which no proxy sees.", "WebRtcIPHandling.*", "QuicAllowed"),
  named(
    "Names are looked up by the proxy.",
    "DnsOverHttps.*",
    "BuiltInDnsClientEnabled",
    "AdditionalDnsQueryTypesEnabled",
    "DNSInterceptionChecksEnabled",
    "IntranetRedirectBehavior",
    "OutOfProcessSystemDnsResolutionEnabled",
    // For Negotiate Chromium looks up the server's canonical name itself, proxy or not (Chromium 156,
    // docs/chromium.md#ways-past-the-proxy); for Kerberos it looks up more.
    "AuthServer(?:Allow|White)list",
  ),
  named(
    "Casting looks for receivers by multicast and dials them itself.",
    "EnableMediaRouter",
    "MediaRouter.*",
    "AccessCodeCast.*",
    "ShowCast.*",
  ),
  named("An isolated web app may open sockets past the proxy.", ".*DirectSockets.*", "IsolatedWebApp.*"),
  named(
    "A policy of the cloud, or of another level, could take the place of ours; the test page could undo them all.",
    "Cloud.*",
    "Policy.*",
    "On[A-Z][A-Za-z]*EnterpriseConnector",
  ),
  named(
    "They name files, directories or libraries of the host.",
    "UserDataDir",
    "DiskCacheDir",
    "(?:Default)?DownloadDirectory",
    "RoamingProfile.*",
    "GSSAPILibraryName",
    "PdfLocalFileAccessAllowedForDomains",
    "AllowFileSelectionDialogs",
  ),
  named(
    "They start programs of the host.",
    "AlternativeBrowser.*",
    "BrowserSwitcher.*",
    "NativeMessaging.*",
    "AutoOpen.*",
    "AutoLaunchProtocols.*",
    "SandboxExternalProtocolBlocked",
  ),
  named(
    "They open devices of the host, or tell of it, without asking.",
    "(?:Serial|WebHid|WebUsb)Allow.*",
    "EnterpriseHardwarePlatformAPIEnabled",
  ),
  named("The sandbox is the service's to decide.", ".*Sandbox(?:Enabled|Allowed)"),
  named(
    "They open another profile than the session's, or none.",
    "ForceEphemeralProfiles",
    "BrowserGuestModeEnforced",
    "ProfilePickerOnStartupAvailability",
    "ForceBrowserSignin",
  ),
  named(
    "They end the browser, or keep it from living without a window; the service decides how long it lives.",
    "BackgroundModeEnabled",
    "Relaunch.*",
    "IdleTimeout.*",
  ),
  named("A warning would take pixels from the page.", "CommandLine.*"),
];
