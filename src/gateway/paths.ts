import type { IncomingMessage } from "node:http";
import { type BrowserId, findBrowserId } from "../base/ids.js";
import type { RootTarget } from "./cdp/connection.js";

/** What a URL of the gateway asks for. */
type GatewayEndpoint =
  | { readonly kind: "client"; readonly root: RootTarget }
  | { readonly kind: "version" }
  | { readonly kind: "list" }
  /** What stands behind `/webdriver`, and the options of a session that was made by HTTP. */
  | { readonly kind: "webdriver"; readonly command: string; readonly options: string }
  | { readonly kind: "curl" }
  | { readonly kind: "unknown" };

export interface Path {
  readonly browser: BrowserId;
  readonly token: string;
  readonly wanted: GatewayEndpoint;
}

const ours = /^\/browsers\/([^/]+)\/(cdp|webdriver|curl)(\/.*)?$/;
const base = "http://gateway";
const targetPath = /^\/devtools\/page\/([0-9A-Za-z-]{1,64})$/;

/** `/browsers/{session_id}/cdp…`, `/webdriver…` and `/curl`; `undefined` for what is not the gateway's. */
export function findPath({ url = "/", headers }: Pick<IncomingMessage, "url" | "headers">): Path | undefined {
  if (!URL.canParse(url, base)) return undefined;
  const { pathname, searchParams } = new URL(url, base);
  const [, id = "", protocol, rest = ""] = ours.exec(pathname) ?? [];
  const browser = findBrowserId(id);
  if (browser === undefined || protocol === undefined) return undefined;
  const command = rest.replace(/\/$/, "");
  const token = searchParams.get("token");
  return protocol === "webdriver"
    ? {
        browser,
        token: token ?? tokenIn(headers.authorization),
        wanted: { kind: "webdriver", command, options: searchParams.get("options") ?? "" },
      }
    : { browser, token: token ?? "", wanted: wantedIn(protocol, command) };
}

/**
 * Selenium sends no query with its requests but the user and password of its server's URL (selenium-webdriver
 * 4.46): the token may be the password, or the user where there is none.
 */
function tokenIn(authorization = ""): string {
  const [, given = ""] = /^basic +([A-Za-z0-9+/=]+)$/i.exec(authorization) ?? [];
  const [user = "", password = ""] = Buffer.from(given, "base64").toString().split(":");
  return password === "" ? user : password;
}

function wantedIn(protocol: string, rest: string): GatewayEndpoint {
  if (protocol === "cdp") return wantedOf(rest);
  return rest === "" ? { kind: "curl" } : { kind: "unknown" };
}

function wantedOf(rest: string): GatewayEndpoint {
  if (rest === "/json/version") return { kind: "version" };
  if (rest === "/json" || rest === "/json/list") return { kind: "list" };
  const page = targetPath.exec(rest)?.[1];
  if (page !== undefined) return { kind: "client", root: { kind: "target", target: page } };
  const isBrowser = rest === "" || /^\/devtools\/browser(\/[0-9A-Za-z-]*)?$/.test(rest);
  return isBrowser ? { kind: "client", root: { kind: "browser" } } : { kind: "unknown" };
}

/** The WebSocket URL of a browser, or of one of its targets, on the public address. */
export const clientUrl = (
  publicUrl: string,
  { target, ...to }: { browser: BrowserId; token: string; target?: string },
): string => socketUrl(publicUrl, to, `cdp${target === undefined ? "" : `/devtools/page/${target}`}`);

/** The session that a BiDi socket is of; the options are in its URL where it was made by HTTP. */
export interface BidiSession {
  readonly id: string;
  readonly options?: string;
}

const sessionPath = /^\/session(?:\/([0-9a-f-]{36}))?$/;

/** The session that is named behind `/webdriver`; undefined where that is no socket's address. */
export function findSessionPath(command: string): { readonly session?: string } | undefined {
  const found = sessionPath.exec(command);
  return found ? (found[1] === undefined ? {} : { session: found[1] }) : undefined;
}

/** The WebSocket URL of a BiDi session. */
export function bidiUrl(
  publicUrl: string,
  { session, ...to }: { browser: BrowserId; token: string; session: BidiSession },
): string {
  const url = socketUrl(publicUrl, to, `webdriver/session/${session.id}`);
  return session.options === undefined ? url : `${url}&options=${session.options}`;
}

function socketUrl(publicUrl: string, to: { browser: BrowserId; token: string }, rest: string): string {
  const url = new URL(publicUrl);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.pathname = `${url.pathname.replace(/\/$/, "")}/browsers/${to.browser}/${rest}`;
  url.search = new URLSearchParams({ token: to.token }).toString();
  return url.toString();
}
