import { randomInt } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import type { ProxyListener } from "./parts.js";
import { findPeerUid } from "./peer/peer.js";

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
  /** Left out: everybody may connect. */
  readonly admission?: Pick<ProxyListener, "admits" | "admit">;
}

/** Undefined where no process holds the other end any more; never rejects. */
const hasUid = (socket: Socket, uid: number | undefined): Promise<boolean | undefined> =>
  findPeerUid(socket).then(
    (found) => (found === undefined ? undefined : found === uid),
    () => false,
  );

/** Admits connections of one uid alone. */
export const admitOnly = (uid: number): Required<Pick<ProxyListener, "admits">> => ({
  admits: (socket) => hasUid(socket, uid),
});

/**
 * Admits the uid alone that `admit` names. Whoever connects first may be another browser: /proc/net/tcp shows
 * all of them which ports listen.
 */
export function admitNamed(): Required<Pick<ProxyListener, "admits" | "admit">> {
  let owner: { readonly uid: number } | undefined;
  return {
    admits: (socket) => hasUid(socket, owner?.uid),
    admit(uid) {
      const admitted = { uid };
      owner = admitted;
      return () => {
        // A later launch may have been admitted already.
        if (owner === admitted) owner = undefined;
      };
    },
  };
}

/** The proxy tier: a port of loopback, chosen by the kernel. */
export function openPort({ host = anyProxyAddress(), admission }: PortOptions = {}): ProxyListener {
  let endpoint: ProxyEndpoint | undefined;
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
    ...admission,
  };
}
