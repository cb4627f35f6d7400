import { execFile } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import type { PodNetwork } from "./network.js";

interface Site {
  readonly url: string;
  /** How often it was asked since it was told to forget that. */
  asked(): number;
  forget(): void;
  close(): void;
}

/** Two sites that pods reach alike. Browsers may come to the addresses of one alone. */
export interface Sites {
  readonly reached: Site;
  readonly denied: Site;
  close(): Promise<void>;
}

/** A private address of which no rule says that browsers may reach it (RFC 1918). */
const deniedHost = "192.168.77.1";

export async function openSites({ host, bridge }: PodNetwork): Promise<Sites> {
  await promisify(execFile)("ip", ["addr", "add", `${deniedHost}/32`, "dev", bridge]);
  const [reached, denied] = [await openSite(host, "allowed"), await openSite(deniedHost, "denied")];
  return {
    reached,
    denied,
    async close() {
      for (const site of [reached, denied]) site.close();
    },
  };
}

async function openSite(host: string, title: string): Promise<Site> {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked += 1;
    response.setHeader("content-type", "text/html");
    response.end(`<!doctype html><title>${title}</title><h1>${title}</h1>`);
  });
  await new Promise<void>((resolve) => void server.listen(0, host, resolve));
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}/`,
    asked: () => asked,
    forget: () => void (asked = 0),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
