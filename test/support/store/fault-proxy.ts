import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";

/** Where in an exchange the client loses its connection; the daemon has the whole request in each. */
export type Cut = "as the reply begins" | "within the reply" | "before the reply";

export interface FaultProxy {
  readonly url: string;
  /** Every exchange whose path ends so is cut, so many times. */
  cut(operation: string, at: Cut, times?: number): void;
  /** Statuses the daemon has answered to what was cut. */
  readonly cutStatuses: (number | undefined)[];
  close(): Promise<void>;
}

/** An HTTP proxy in front of a daemon that drops the connections of chosen replies. */
export async function openFaultProxy(target: string): Promise<FaultProxy> {
  const cuts: { readonly operation: string; readonly at: Cut; left: number }[] = [];
  const cutStatuses: (number | undefined)[] = [];
  const { hostname, port } = new URL(target);
  const server = createServer((incoming, outgoing) => {
    const path = (incoming.url ?? "").split("?", 1)[0] ?? "";
    const cut = cuts.find(
      ({ operation, left }) => left > 0 && matches(operation, incoming.method ?? "", path),
    );
    if (cut) cut.left -= 1;
    const { method, url, headers } = incoming;
    const onward = httpRequest({ host: hostname, port, method, path: url, headers, agent: false });
    const drop = (status?: number): void => {
      cutStatuses.push(status);
      outgoing.socket?.resetAndDestroy();
      onward.destroy();
    };
    onward.on("error", () => outgoing.destroy());
    outgoing.once("close", () => onward.destroy());
    if (cut?.at === "before the reply") onward.once("finish", () => drop());
    onward.on("response", (reply) => {
      if (cut?.at === "as the reply begins") return drop(reply.statusCode);
      outgoing.writeHead(reply.statusCode ?? 500, reply.headers);
      if (cut?.at !== "within the reply") return reply.pipe(outgoing);
      outgoing.flushHeaders();
      return reply.on("data", () => {}).once("end", () => drop(reply.statusCode));
    });
    incoming.pipe(onward);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cutStatuses,
    cut: (operation, at, times = 1) => void cuts.push({ operation, at, left: times }),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function matches(operation: string, method: string, path: string): boolean {
  const [wanted = "", end = ""] = operation.split(" ");
  return method === wanted && path.endsWith(end);
}
