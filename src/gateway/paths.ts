import { type BrowserId, findBrowserId } from "../base/ids.js";
import type { RootTarget } from "./cdp/connection.js";

/** What a URL of the gateway asks for. */
type GatewayEndpoint =
  | { readonly kind: "client"; readonly root: RootTarget }
  | { readonly kind: "version" }
  | { readonly kind: "list" }
  | { readonly kind: "webdriver" }
  | { readonly kind: "curl" }
  | { readonly kind: "unknown" };

export interface Path {
  readonly browser: BrowserId;
  readonly token: string;
  readonly wanted: GatewayEndpoint;
}

const ours = /^\/browsers\/([^/]+)\/(cdp|webdriver|curl)(\/.*)?$/;
const base = "http://gateway";
const target = /^\/devtools\/page\/([0-9A-Za-z-]{1,64})$/;

/** `/browsers/{session_id}/cdp…`, `/webdriver…` and `/curl`; `undefined` for what is not the gateway's. */
export function findPath(url: string): Path | undefined {
  if (!URL.canParse(url, base)) return undefined;
  const { pathname, searchParams } = new URL(url, base);
  const [, id = "", protocol, rest = ""] = ours.exec(pathname) ?? [];
  const browser = findBrowserId(id);
  if (browser === undefined || protocol === undefined) return undefined;
  return {
    browser,
    token: searchParams.get("token") ?? "",
    wanted: wantedIn(protocol, rest.replace(/\/$/, "")),
  };
}

function wantedIn(protocol: string, rest: string): GatewayEndpoint {
  if (protocol === "webdriver") return { kind: "webdriver" };
  if (protocol === "cdp") return wantedOf(rest);
  return rest === "" ? { kind: "curl" } : { kind: "unknown" };
}

function wantedOf(rest: string): GatewayEndpoint {
  if (rest === "/json/version") return { kind: "version" };
  if (rest === "/json" || rest === "/json/list") return { kind: "list" };
  const page = target.exec(rest)?.[1];
  if (page !== undefined) return { kind: "client", root: { kind: "target", target: page } };
  const isBrowser = rest === "" || /^\/devtools\/browser(\/[0-9A-Za-z-]*)?$/.test(rest);
  return isBrowser ? { kind: "client", root: { kind: "browser" } } : { kind: "unknown" };
}

/** The WebSocket URL of a browser, or of one of its targets, on the public address. */
export function clientUrl(
  publicUrl: string,
  to: { browser: BrowserId; token: string; target?: string },
): string {
  const url = new URL(publicUrl);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const page = to.target === undefined ? "" : `/devtools/page/${to.target}`;
  url.pathname = `${url.pathname.replace(/\/$/, "")}/browsers/${to.browser}/cdp${page}`;
  url.search = new URLSearchParams({ token: to.token }).toString();
  return url.toString();
}
