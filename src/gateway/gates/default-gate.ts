import { nestedCommandRule } from "./nested-commands.js";
import { egressRules } from "./egress-commands.js";
import { fileRules } from "./file-commands.js";
import { type Gate, makeGate, pass, refuseCommand, type Rule } from "./gate.js";

const refused = new Map([
  [
    "Browser.executeBrowserCommand",
    "Browser.executeBrowserCommand is refused: it opens pages of the browser's own",
  ],
  ["Browser.crash", "Browser.crash is refused: the browser outlives its clients"],
  ["Browser.crashGpuProcess", "Browser.crashGpuProcess is refused: the browser outlives its clients"],
  // Chromium opens files of the host to an extension that is loaded so; ours are checked and narrowed first
  // (registry/extensions/narrow-manifest.ts).
  [
    "Extensions.loadUnpacked",
    "Extensions.loadUnpacked is refused: POST /browsers/{id}/extensions loads extensions",
  ],
  // Page JavaScript would hold a browser-level connection that no gate sees
  // (docs/chromium.md#ways-past-the-proxy).
  ["Target.exposeDevToolsProtocol", "Target.exposeDevToolsProtocol is refused: it leads round the gateway"],
]);

/**
 * Commands for installed apps: they make launchers for a desktop, by programs of the host, or hand files to
 * an app.
 */
const ofInstalledApps = "PWA.";

/** Commands that reach past the client's own session. */
const browserRules: Rule = ({ method }) => {
  const message = refused.get(method);
  if (message !== undefined) return refuseCommand(message);
  if (method.startsWith(ofInstalledApps))
    return refuseCommand(`${method} is refused: apps are not installed here`);
  // The session stays: only this client goes (docs/api.md#cdp-urls).
  return method === "Browser.close" ? { kind: "answer", result: {}, andDisconnect: true } : pass;
};

/**
 * The rules in force: first what is opened and judged by all of them, then what is refused outright, last
 * what may be rewritten.
 */
export const defaultGate: Gate = makeGate([
  nestedCommandRule((command, context) => defaultGate(command, context)),
  browserRules,
  egressRules,
  fileRules,
]);
