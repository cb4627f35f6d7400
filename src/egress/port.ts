import { randomInt } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import type { ProxyListener } from "./parts.js";
import { findPeerUid } from "./peer.js";

interface ProxyEndpoint {
  readonly host: string;
  readonly port: number;
}
const live = new Set<ProxyEndpoint>();

/** Where the proxies of this process listen that are of the proxy tier. */
export const proxyEndpoints: ReadonlySet<ProxyEndpoint> = live;

/**
 * The part of loopback in which every daemon's proxies listen, and which therefore no daemon lets a browser
 * reach.
 */
const proxyBlock = "127.114.";

export const isProxyAddress = (address: string): boolean => address.startsWith(proxyBlock);

const anyProxyAddress = (): string => `${proxyBlock}${randomInt(256)}.${randomInt(1, 255)}`;

interface PortOptions {
  /** Left out: an address of the block. */
  readonly host?: string;
  /** Whether processes of this uid may be a browser of ours. Left out: everybody may connect. */
  mayConnect?(uid: number): boolean;
}

/**
 * The proxy tier: a port of loopback, chosen by the kernel. The first uid that connects, of those that may,
 * is the browser's; all others are refused.
 */
export function openPort({ host = anyProxyAddress(), mayConnect }: PortOptions = {}): ProxyListener {
  let endpoint: ProxyEndpoint | undefined;
  let owner: number | undefined;
  const admits = async (socket: Socket): Promise<boolean> => {
    const uid = await findPeerUid(socket).catch(() => undefined);
    if (uid === undefined || !mayConnect?.(uid)) return false;
    owner ??= uid;
    return uid === owner;
  };
  return {
    tier: "proxy",
    get proxyUrl() {
      if (!endpoint) throw new Error("the egress does not listen yet");
      return `http://${host}:${endpoint.port}`;
    },
    async listen(server: Server) {
      server.listen(0, host);
      await once(server, "listening");
      endpoint = { host, port: (server.address() as AddressInfo).port };
      live.add(endpoint);
    },
    close() {
      if (endpoint) live.delete(endpoint);
    },
    ...(mayConnect && { admits }),
  };
}
