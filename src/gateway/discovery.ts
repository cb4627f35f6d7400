import type { BrowserId } from "../base/ids.js";
import type { TargetInfo } from "../browser/cdp/target-event.js";
import { clientUrl } from "./paths.js";
import type { LocalBrowser } from "./ports.js";

interface DiscoveryContext {
  readonly publicUrl: string;
  readonly browser: BrowserId;
  readonly token: string;
}

/** `/json/version` as Chromium's own port gives it, with our URL. */
export const versionPage = (at: DiscoveryContext, { version }: LocalBrowser["chromium"]): object => ({
  Browser: version.product,
  "Protocol-Version": version.protocolVersion,
  "User-Agent": version.userAgent,
  webSocketDebuggerUrl: clientUrl(at.publicUrl, at),
});

/** `/json/list`: every target with a URL of its own, under the same token. */
export const listPage = (at: DiscoveryContext, targets: readonly TargetInfo[]): object[] =>
  targets.map(({ targetId, type, title, url }) => ({
    description: "",
    id: targetId,
    title,
    type,
    url,
    webSocketDebuggerUrl: clientUrl(at.publicUrl, { ...at, target: targetId }),
  }));
