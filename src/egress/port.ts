import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import type { Listener } from "./parts.js";

const live = new Set<number>();

/** The ports of this process on which an egress of the proxy tier listens. */
export const proxyPorts: ReadonlySet<number> = live;

/** The proxy tier: a port of 127.0.0.1, chosen by the kernel. */
export function openPort(): Listener {
  let port = 0;
  return {
    tier: "proxy",
    get proxyUrl() {
      if (port === 0) throw new Error("the egress does not listen yet");
      return `http://127.0.0.1:${port}`;
    },
    async listen(server: Server) {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      ({ port } = server.address() as AddressInfo);
      live.add(port);
    },
    close() {
      live.delete(port);
    },
  };
}
