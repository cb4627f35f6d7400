import { once } from "node:events";
import type { Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { Rules } from "../../src/egress/rules.js";
import type { Upstream } from "../../src/registry/proxies/proxy.js";
import { type EgressBed, openEgress, rulesFor } from "../support/egress/egress-bed.js";
import { testCertificate } from "../support/egress/egress-certificate.js";
import { openSocket, readText } from "../support/egress/egress-client.js";
import { lossOf, openRawOrigin, type TestServer } from "../support/egress/egress-origin.js";

/**
 * Rounds of the event loop from when the origin has accepted a connection to when something ends it. In the
 * first the proxy does not know yet that it is connected; in the second it has just sent what it was asked.
 */
const rounds = [0, 1, 2, 3];

/** Somebody who uses the proxy: `over` resolves when he is answered or cut off. */
interface Asker {
  readonly over: Promise<unknown>;
  leave(): void;
}

const bySocket =
  (text: (target: string) => string) =>
  async ({ port }: EgressBed, target: string): Promise<Asker> => {
    const socket = await openSocket(port);
    const over = readText(socket, (answer) => /^HTTP\/1.1 \d/.test(answer));
    socket.write(text(target));
    return { over, leave: () => void socket.destroy() };
  };

const byCurl =
  (scheme: "http" | "https") =>
  async ({ egress }: EgressBed, target: string): Promise<Asker> => {
    const leaving = new AbortController();
    const asked = { url: `${scheme}://${target}/`, method: "GET", headers: {}, timeoutMs: 600_000 };
    return { over: egress.fetch(asked, leaving.signal).catch(() => {}), leave: () => leaving.abort() };
  };

const askers = {
  "a request": bySocket((target) => `GET http://${target}/ HTTP/1.1\r\n\r\n`),
  "a request with a body that is still to come": bySocket(
    (target) => `POST http://${target}/ HTTP/1.1\r\nContent-Length: 10\r\n\r\npart`,
  ),
  "a tunnel": bySocket((target) => `CONNECT ${target} HTTP/1.1\r\n\r\nsent with it`),
  "an upgrade": bySocket(
    (target) => `GET http://${target}/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  ),
  "a request of curl": byCurl("http"),
  "a request of curl by TLS": byCurl("https"),
};

/** Reached directly, or a proxy of the registry that accepts and says nothing. */
const ways = ["direct", "http", "https", "socks5"] as const;

function rulesOf(way: (typeof ways)[number], { port }: TestServer): Rules {
  if (way === "direct") return rulesFor([`127.0.0.1:${port}`]);
  const upstream: Upstream = {
    id: "silent",
    protocol: way,
    host: "127.0.0.1",
    port,
    bypass: [],
    ...(way === "https" && { caBundle: testCertificate }),
  };
  return { allowed: null, privates: [], routes: [], upstream };
}

const endings = {
  "other rules": ({ egress }: EgressBed) => egress.apply(rulesFor([], ["elsewhere.test"])),
  "its close": ({ egress }: EgressBed) => egress.close(),
  "the asker's leaving": (_: EgressBed, asker: Asker) => asker.leave(),
};

/** Those whose target is still being reached when the asker leaves are given up at the limit. */
const connectMsOf = (ending: keyof typeof endings): number =>
  ending === "the asker's leaving" ? 200 : 600_000;

async function roundsAfter(event: Promise<unknown>, count: number): Promise<void> {
  await event;
  for (let round = 0; round < count; round += 1) await new Promise(setImmediate);
}

interface Moment {
  readonly asker: keyof typeof askers;
  readonly way: (typeof ways)[number];
  readonly ending: keyof typeof endings;
  readonly round: number;
}

async function endAt({ asker, way, ending, round }: Moment): Promise<void> {
  const origin = await openRawOrigin((socket) => void socket.resume());
  onTestFinished(() => origin.close());
  const bed = await openEgress(rulesOf(way, origin), { settings: { connectMs: connectMsOf(ending) } });
  onTestFinished(() => bed.egress.close());
  const moment = roundsAfter(once(origin.server, "connection"), round);
  const asking = await askers[asker](bed, way === "direct" ? `127.0.0.1:${origin.port}` : "site.test:80");
  await moment;
  await endings[ending](bed, asking);
  await Promise.all(origin.accepted.map((socket: Socket) => lossOf(socket)));
  await asking.over;
  await expect.poll(() => bed.egress.usage().connections).toBe(0);
}

const cases = (Object.keys(askers) as (keyof typeof askers)[]).flatMap((asker) =>
  ways.map((way) => [asker, way] as const),
);

test.each(cases)(
  "whenever it comes, an end leaves nothing of %s by the way %s behind",
  async (asker, way) => {
    for (const ending of Object.keys(endings) as (keyof typeof endings)[])
      await Promise.all(rounds.map((round) => endAt({ asker, way, ending, round })));
  },
);
