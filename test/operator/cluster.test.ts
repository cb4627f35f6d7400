import { getEventListeners, once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { KubeConfig } from "@kubernetes/client-node";
import { afterEach, expect, test } from "vitest";
import { Cluster } from "../../src/operator/cluster.js";
import { DrivenClock } from "../support/driven-clock.js";

const clock = new DrivenClock();
const stopping = new AbortController().signal;
const limitMs = 5000;
let close = async (): Promise<void> => {};
afterEach(() => close());

function clusterAt(port: number): Cluster {
  const kubeConfig = new KubeConfig();
  const server = `http://127.0.0.1:${port}`;
  kubeConfig.loadFromClusterAndUser({ name: "none", server, skipTLSVerify: true }, { name: "nobody" });
  return new Cluster({ kubeConfig, namespace: "herds", clock, limitMs, stopping });
}

/** An API server that answers a watch as `answer` has it; resolves when one has come. */
async function serve(answer: (response: ServerResponse) => void) {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  const asked = once(server, "request").then(([, response]) => {
    answer(response as ServerResponse);
    return response as ServerResponse;
  });
  return { cluster: clusterAt((server.address() as AddressInfo).port), asked };
}

test("a watch that has ended leaves nothing with what would have stopped it", async () => {
  // Nothing listens there, so that each watch ends at once.
  const cluster = clusterAt(1);
  for (let count = 0; count < 3; count += 1)
    await expect(cluster.watch("1", () => {})).rejects.toThrow(/ECONNREFUSED/);
  expect(getEventListeners(stopping, "abort")).toEqual([]);
  expect(clock.pending).toBe(0);
});

test("a watch that is not begun in time is given up, and ended should it begin after all", async () => {
  const { cluster, asked } = await serve(() => {});
  const watch = cluster.watch("1", () => {});
  const given = expect(watch).rejects.toThrow("not begun in 5000 ms");
  const response = await asked;
  await clock.advance(limitMs);
  await given;
  const closed = once(response, "close");
  response.writeHead(200);
  response.flushHeaders();
  await closed;
  expect(clock.pending).toBe(0);
});

test("a watch that its server neither ends nor tells anything by is given up, and its connection closed", async () => {
  const { cluster, asked } = await serve((response) => {
    response.writeHead(200);
    response.write(`${JSON.stringify({ type: "ADDED", object: { metadata: { name: "agents" } } })}\n`);
  });
  let tell = (_name: string): void => {};
  const told = new Promise<string>((resolve) => (tell = resolve));
  const watch = cluster.watch("1", ({ name }) => tell(name));
  const given = expect(watch).rejects.toThrow("not ended in 245000 ms");
  const closed = once(await asked, "close");
  expect(await told).toBe("agents");
  await clock.advance(244_000);
  await clock.advance(1000);
  await given;
  await closed;
  expect(clock.pending).toBe(0);
});

test("a resource is absent by Kubernetes's own word alone", async () => {
  const answers = [
    '{"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "details": {"name": "agents"}}',
    "default backend - 404",
    "404 page not found\n",
    '{"kind": "Status", "status": "Failure", "code": 404}',
    "",
  ];
  const found = [];
  for (const text of answers) {
    const { cluster } = await serve((response) => void response.writeHead(404).end(text));
    found.push(await cluster.find("agents").catch((error: { readonly code?: number }) => error.code));
    await close();
  }
  close = async () => {};
  expect(found).toEqual([undefined, 404, 404, 404, 404]);
});
