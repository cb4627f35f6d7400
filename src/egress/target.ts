import { isIPv6 } from "node:net";
import { parseHost } from "../base/net/hosts.js";
import type { TargetHost } from "./rules.js";

/** A plain request as a proxy gets it. */
export interface AbsoluteTarget {
  readonly target: TargetHost;
  /** Path and query, as they were sent. */
  readonly path: string;
}

const authority = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d{0,5}))?$/;
const absolute = /^http:\/\/([^/?]*)(.*)$/i;
/** What WHATWG and RFC 3986 read differently, or what no browser sends: refused rather than interpreted. */
const ambiguous = /[\\#\s\p{Cc}]/u;

/** `host[:port]`; without a port, and without a default, it is none. */
export function parseAuthority(text: string, defaultPort: number | undefined): TargetHost | undefined {
  const [, name = "", digits = ""] = authority.exec(text) ?? [];
  const port = digits === "" ? defaultPort : Number(digits);
  const parsed = name === "" ? undefined : parseHost(name);
  return parsed && port !== undefined && port >= 1 && port <= 65_535
    ? { host: parsed.host, port }
    : undefined;
}

/** `host:port` of a CONNECT; the port is not optional (RFC 9110 9.3.6). */
export const parseConnectTarget = (text: string): TargetHost | undefined => parseAuthority(text, undefined);

/** `http://host[:port]/path?query`; undefined for every other form and for URLs with user information. */
export function parseAbsoluteTarget(url: string): AbsoluteTarget | undefined {
  if (ambiguous.test(url)) return undefined;
  const [, at = "", rest = ""] = absolute.exec(url) ?? [];
  const target = parseAuthority(at, 80);
  return target && { target, path: rest.startsWith("/") ? rest : `/${rest}` };
}

const bracketed = (host: string): string => (isIPv6(host) ? `[${host}]` : host);

export const authorityOf = ({ host, port }: TargetHost): string => `${bracketed(host)}:${port}`;

/** Writes a target as a Host header names it. */
export const hostHeaderOf = ({ host, port }: TargetHost, defaultPort = 80): string =>
  port === defaultPort ? bracketed(host) : `${bracketed(host)}:${port}`;
