/** An extension as files, and what is wrong with it. */
export interface ManifestCase {
  readonly what: string;
  /** Its text, or what differs from a manifest that is as it should be. */
  readonly manifest: string | object;
  readonly files?: readonly string[];
  /** A part of what is said of it; absent where a browser loads it. */
  readonly fault?: string;
}

export const blockedPermissions = ["proxy", "privacy", "debugger", "nativeMessaging", "dns"];
const least = '"manifest_version":3,"name":"x","version":"1"';
export const textOf = ({ manifest }: ManifestCase): string =>
  typeof manifest === "string"
    ? manifest
    : JSON.stringify({ manifest_version: 3, name: "x", version: "1", ...manifest });

const script = (more: object) => ({ content_scripts: [{ matches: ["<all_urls>"], js: ["a.js"], ...more }] });
const ok = (what: string, manifest: string | object, files: readonly string[] = []): ManifestCase => ({
  what,
  manifest,
  files,
});
const bad = (
  ...[what, manifest, fault, files = []]: [string, string | object, string, (readonly string[])?]
): ManifestCase => ({ what, manifest, files, fault });

export const manifestCases: readonly ManifestCase[] = [
  ok("the least", {}),
  ok("a byte order mark", `\ufeff{${least}}`),
  ok("comments", `// one\n{ /* two // */ ${least}, // three\n "description": "http://x/*y*/" }`),
  bad("a comma after the last", `{${least},}`, "is not valid JSON"),
  ok("as deep as may be", `{${least},"x":${"[".repeat(198)}${"]".repeat(198)}}`),
  bad("too deep", `{${least},"x":${"[".repeat(199)}${"]".repeat(199)}}`, "is nested deeper than 199"),
  bad("a list", "[]", "is not an object"),
  bad("nothing", "", "is not valid JSON"),
  bad("a lone null", "null", "is not an object"),
  bad("version 2 of manifests", { manifest_version: 2 }, "manifest_version: must be 3"),
  bad("a text for manifest_version", { manifest_version: "3" }, "manifest_version: must be 3"),
  bad("no manifest_version", { manifest_version: undefined }, "it is absent"),
  bad("no name", { name: undefined }, "name: must be"),
  bad("an empty name", { name: "" }, "name: must be"),
  bad("a number for a name", { name: 1 }, "name: must be"),
  ok("a long name", { name: "x".repeat(200) }),
  ...["0", "1.2.3.4", "1.01", "65536", "4294967295", "0.0.0"].map((version) =>
    ok(`version ${version}`, { version }),
  ),
  ...["", "1.", "01", "a", "1.0a", "-1", "1.2.3.4.5", "4294967296", " 1", 1].map((version) =>
    bad(`version ${JSON.stringify(version)}`, { version }, "version: must be"),
  ),
  bad("a description that is none", { description: 1 }, "description: must be a text"),
  ok("a content script", script({}), ["a.js"]),
  ok("its path from the root", script({ js: ["/a.js"] }), ["a.js"]),
  ok("its path with a detour", script({ js: ["./x/../a.js"] }), ["a.js"]),
  ok("its path with a space", script({ js: ["a b.js"] }), ["a b.js"]),
  bad("its path encoded", script({ js: ["a%20b.js"] }), "names a%20b.js", ["a b.js"]),
  bad("its path in another case", script({ js: ["A.js"] }), "names A.js", ["a.js"]),
  bad("a content script that is not there", script({}), "content_scripts[0].js: names a.js"),
  bad("a style that is not there", script({ css: ["b.css"] }), "content_scripts[0].css: names b.css", [
    "a.js",
  ]),
  bad("a content script without files", script({ js: undefined }), "must have at least one file"),
  bad("one without matches", script({ matches: undefined }), "must be a list of at least one pattern", [
    "a.js",
  ]),
  bad("one that matches nothing", script({ matches: [] }), "must be a list of at least one pattern", [
    "a.js",
  ]),
  bad("content scripts that are no list", { content_scripts: {} }, "content_scripts: must be"),
  ok("no content scripts", { content_scripts: [] }),
  bad("files that are no list", script({ js: "a.js" }), "content_scripts[0].js: must be a list of texts", [
    "a.js",
  ]),
  ok("a worker", { background: { service_worker: "w.js" } }, ["w.js"]),
  bad(
    "a worker that is not there",
    { background: { service_worker: "w.js" } },
    "background.service_worker: names w.js",
  ),
  ok("scripts in the background, which nobody runs", { background: { scripts: ["s.js"] } }),
  bad("an icon that is not there", { icons: { 16: "i.png" } }, "icons.16: names i.png"),
  ok("an icon", { icons: { 16: "i.png" } }, ["i.png"]),
  bad("icons that are a list", { icons: ["i.png"] }, "icons: must be", ["i.png"]),
  bad("an icon of no size", { icons: { big: "i.png" } }, "icons: must be", ["i.png"]),
  bad("an icon of its action", { action: { default_icon: "i.png" } }, "action.default_icon: names i.png"),
  bad(
    "icons of its action",
    { action: { default_icon: { 16: "i.png" } } },
    "action.default_icon.16: names i.png",
  ),
  bad("an action that is none", { action: "x" }, "action: must be an object"),
  ok("a popup that is not there", { action: { default_popup: "p.html" } }),
  bad("an options page", { options_page: "o.html" }, "options_page: names o.html"),
  bad("an options page in its own way", { options_ui: { page: "o.html" } }, "options_ui.page: names o.html"),
  bad(
    "a new tab",
    { chrome_url_overrides: { newtab: "n.html" } },
    "chrome_url_overrides.newtab: names n.html",
  ),
  bad(
    "a side panel",
    { permissions: ["sidePanel"], side_panel: { default_path: "n.html" } },
    "side_panel.default_path: names n.html",
  ),
  bad(
    "rules",
    {
      permissions: ["declarativeNetRequest"],
      declarative_net_request: { rule_resources: [{ id: "r", enabled: true, path: "r.json" }] },
    },
    "rule_resources[0].path: names r.json",
  ),
  ok("permissions nobody knows", { permissions: ["nope", "http://a/*"] }),
  bad("permissions that are a text", { permissions: "tabs" }, "permissions: must be"),
  bad("a permission that is a number", { permissions: [1] }, "permissions: must be"),
  bad("hosts that are a text", { host_permissions: "x" }, "host_permissions: must be"),
  bad("later permissions that are a text", { optional_permissions: "x" }, "optional_permissions: must be"),
  ...blockedPermissions.map((permission) =>
    bad(
      `the permission ${permission}`,
      { permissions: ["tabs", permission] },
      `permissions: ${permission} is blocked here`,
    ),
  ),
  ok("a blocked permission that is asked for later", { optional_permissions: ["debugger"] }),
  bad("an app", { app: { background: { scripts: ["a.js"] } } }, "app: apps are blocked here", ["a.js"]),
  ok("a shared module", { export: {} }),
  ok("a theme", { theme: { colors: { frame: [1, 2, 3] } } }),
  ok("a locale", { default_locale: "en" }, ["_locales/en/messages.json"]),
  bad("no locales", { default_locale: "en" }, "_locales/en/messages.json: is not in the archive"),
  bad("another locale", { default_locale: "en" }, "_locales/en/messages.json: is not in the archive", [
    "_locales/de/messages.json",
  ]),
  bad("locales without a default", {}, "default_locale: must be set", ["_locales/en/messages.json"]),
  bad("a reserved file", {}, "_x.js: names that begin with _", ["_x.js"]),
  bad("a reserved directory", {}, "_x: names that begin with _", ["_x/y.js"]),
  ok("such a directory further down", {}, ["x/_y/z.js"]),
  ok("one that is Chromium's", {}, ["_platform_specific/y"]),
];
