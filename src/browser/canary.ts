import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { endServer } from "../base/net/end-server.js";

/** One path of the canary, which nobody else knows. */
interface CanaryPath {
  readonly url: string;
  /** True where a request has come. */
  wasTouched(): boolean;
  close(): void;
}

/**
 * A server on the machine's loopback that no browser may ever reach: a browser that asks for one of its paths
 * has gone past its proxy. Its port has to be among Remuda's own, which every proxy denies whatever the rules
 * say.
 */
export interface Canary {
  readonly port: number;
  openPath(): CanaryPath;
  close(): Promise<void>;
}

export async function openCanary(): Promise<Canary> {
  const untouched = new Set<string>();
  const server = createServer((request, response) => {
    untouched.delete(request.url ?? "");
    response.writeHead(404, { connection: "close" }).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // An open canary must not keep the daemon's process alive.
  server.unref();
  const { port } = server.address() as AddressInfo;
  return {
    port,
    openPath() {
      const path = `/${randomUUID()}`;
      untouched.add(path);
      return {
        url: `http://127.0.0.1:${port}${path}`,
        wasTouched: () => !untouched.has(path),
        close: () => void untouched.delete(path),
      };
    },
    close: () => endServer(server),
  };
}
