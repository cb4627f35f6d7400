import { once } from "node:events";
import type { Socket } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { makeReservedEndpoints } from "../../src/egress/reserved-endpoints.js";
import { dialThrough } from "../../src/egress/upstream.js";
import type { Upstream } from "../../src/registry/proxies/proxy.js";
import { type EgressBed, openEgress, patterns } from "../support/egress/egress-bed.js";
import { bodyOf, openTunnel } from "../support/egress/egress-client.js";
import { openDroppingPort, openRawOrigin } from "../support/egress/egress-origin.js";
import { freePort } from "../support/free-port.js";

const closing: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const protocols = ["http", "https", "socks5"] as const;
const proxyAt = (protocol: Upstream["protocol"], port: number): Upstream => ({
  id: "far",
  protocol,
  host: "127.0.0.1",
  port,
  bypass: [],
});

async function bedThrough(upstream: Upstream, connectMs = 60_000): Promise<EgressBed> {
  const bed = await openEgress(
    { allowed: null, privates: [], routes: [], upstream },
    { settings: { connectMs } },
  );
  closing.push(() => bed.egress.close());
  return bed;
}

const openSilent = () => openRawOrigin((socket) => void socket.resume());

test.each(protocols)("a proxy for %s that says nothing is given up in time", async (protocol) => {
  const silent = await openSilent();
  closing.push(() => silent.close());
  const bed = await bedThrough(proxyAt(protocol, silent.port), 200);
  const { status, answer } = await openTunnel(bed.port, "site.test:443");
  expect(status).toBe(502);
  expect(bodyOf(answer)).toContain("The proxy far did not answer in time");
  await expect.poll(() => bed.egress.usage().connections).toBe(0);
});

/** Gives why the proxy is given up. */
const failureBy = (upstream: Upstream, connectMs: number, clock = systemClock): Promise<unknown> =>
  dialThrough(
    upstream,
    { host: "site.test", port: 443 },
    {
      connectMs,
      clock,
      resolve: async () => [],
      reserved: makeReservedEndpoints([]),
      proxyHosts: patterns("127.0.0.1"),
    },
  ).then(
    () => "it was reached",
    (error: unknown) => (error as Error).message,
  );
const inTime = "The proxy far did not answer in time";

test.each(protocols)("so is one for %s whose host drops connections, and that is told", async (protocol) => {
  const { port, close } = await openDroppingPort();
  closing.push(close);
  // Time goes by between two looks at the clock, so that the limit of the connection itself is the first.
  let lookedAt = 0;
  const clock = { ...systemClock, monotonic: () => (lookedAt += 50) };
  expect(await failureBy(proxyAt(protocol, port), 200, clock)).toBe(inTime);
});

test("a proxy for socks5 has as long as the limit says, which may be more than the library's 30 s", async () => {
  const silent = await openSilent();
  closing.push(() => silent.close());
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  closing.push(() => vi.useRealTimers());
  const failure = failureBy(proxyAt("socks5", silent.port), 120_000);
  const [socket] = (await once(silent.server, "connection")) as [Socket];
  await once(socket, "data");
  await vi.advanceTimersByTimeAsync(120_000);
  expect(await failure).toBe(inTime);
});

test.each(protocols)("a proxy for %s that answers nonsense or is not there is 502", async (protocol) => {
  const odd = await openRawOrigin(
    (socket) => void socket.once("data", () => socket.end("\u0000\u0001 no proxy\r\n\r\n")),
  );
  closing.push(() => odd.close());
  for (const port of [odd.port, await freePort()]) {
    const bed = await bedThrough(proxyAt(protocol, port));
    expect(await openTunnel(bed.port, "site.test:443")).toMatchObject({
      status: 502,
      answer: expect.stringMatching(/The proxy far (?!did not answer in time)/),
    });
  }
});
