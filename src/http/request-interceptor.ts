import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** Sees a browser's own URLs and every upgrade before the API does; true means it took it and will answer. */
export interface RequestInterceptor {
  request(request: IncomingMessage, response: ServerResponse): boolean;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean;
}

/**
 * Messages to the node in this process; `/browsers/{id}/cdp…` and `/browsers/{id}/webdriver…`, discovery
 * included; `/browsers/{id}/curl` where it brings a lease's token instead of the key.
 */
export const isInterceptedPath = (url: string): boolean =>
  url === "/node/messages" || (url.startsWith("/browsers/") && isLeasePath(url));

const isLeasePath = (url: string): boolean =>
  /^\/browsers\/[^/?]+\/(?:(?:cdp|webdriver)(?:[/?]|$)|curl\?(?:.*&)?token=)/.test(url);
