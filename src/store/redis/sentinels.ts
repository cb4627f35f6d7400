import type { Millis } from "../../base/clock.js";
import { sentinelUrlPattern } from "../../base/net/redis-url.js";
import type { RedisTls } from "./tls.js";

/** `rediss+sentinel` speaks TLS to all of them. */
const form = new RegExp(sentinelUrlPattern);
const sentinelPort = 26_379;

export const isSentinelUrl = (url: string): boolean => form.test(url);

interface SentinelPlace {
  readonly host: string;
  readonly port: number;
}

interface SentinelOptions {
  readonly url: string;
  readonly connectTimeoutMs: Millis;
  readonly commandTimeoutMs: Millis;
  readonly sentinelPassword?: string;
  readonly sentinelUsername?: string;
  readonly tls?: RedisTls;
}

function partsOf(url: string) {
  const [, scheme = "", username = "", password = "", hosts = "", name = ""] = form.exec(url) ?? [];
  const [user, secret, master] = [username, password, name].map(decodeURIComponent) as [
    string,
    string,
    string,
  ];
  return { isSecure: scheme === "rediss", username: user, password: secret, hosts, name: master };
}

/** A name or address, in brackets where it is of version 6, and a port. */
function placeIn(text: string): SentinelPlace {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(text) ?? [];
  return { host: bracketed ?? plain ?? text, port: Number(port ?? sentinelPort) };
}

export const sentinelPlaces = (url: string): readonly SentinelPlace[] =>
  partsOf(url).hosts.split(",").map(placeIn);

/**
 * How ioredis finds the sentinels. One that does not answer is passed over like one that cannot be reached.
 */
export function sentinelsIn(options: SentinelOptions) {
  const { url, connectTimeoutMs, commandTimeoutMs, sentinelPassword, sentinelUsername, tls = {} } = options;
  const { isSecure, username, password, name } = partsOf(url);
  return {
    sentinels: sentinelPlaces(url).map((place) => ({ ...place })),
    name,
    sentinelCommandTimeout: commandTimeoutMs,
    connectTimeout: connectTimeoutMs,
    ...(username && { username }),
    ...(password && { password }),
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(sentinelUsername !== undefined && { sentinelUsername }),
    ...(isSecure && { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }),
  };
}
