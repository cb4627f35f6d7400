import { createServer, get, type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { type Clock, systemClock } from "../../../src/base/clock.js";
import { type BrowserId, type LeaseId, newLeaseId } from "../../../src/base/ids.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import type { Chromium } from "../../../src/browser/chromium.js";
import { Activity } from "../../../src/gateway/activity.js";
import { Bridge } from "../../../src/gateway/cdp/bridge.js";
import { Gateway } from "../../../src/gateway/gateway.js";
import { defaultGate } from "../../../src/gateway/gates/default-gate.js";
import { defaultGatewayLimits, type GatewayLimits } from "../../../src/gateway/limits.js";
import type {
  ClientObserver,
  GatewayPorts,
  LocalBrowser,
  NodeAddress,
  Registration,
} from "../../../src/gateway/ports.js";
import { tokenOf } from "../../../src/base/crypto/lease-token.js";
import { builtJudge, builtMapper } from "./built-judge.js";
import { silentLog } from "../browser/chromium-host.js";

export const bedSecret = new Secret("a secret of the tests");

export interface Counts {
  opened: number;
  closed: number;
  received: number;
  sent: number;
  refused: string[];
}

/** A gateway on a port of its own, in front of real browsers, with the leases in memory instead of Redis. */
export interface GatewayBed {
  readonly port: number;
  readonly counts: Counts;
  readonly gateway: Gateway;
  readonly registered: Registration[];
  /** Hears what the clients of all browsers do from here on. */
  observer: ClientObserver | undefined;
  /** Answers `connect` from here on. */
  connects: GatewayPorts["connect"];
  local(browser: BrowserId): LocalBrowser;
  lease(browser: BrowserId): LeaseId;
  /** The present lease is over and another begins. */
  newLease(browser: BrowserId): void;
  /** `ws://…/browsers/{id}/cdp?token=…` of the present lease, with what is given behind `/cdp`. */
  url(browser: BrowserId, rest?: string): string;
  http(browser: BrowserId, rest?: string): string;
  /** `ws://…/browsers/{id}/webdriver/session?token=…` of the present lease. */
  bidi(browser: BrowserId): string;
  close(): Promise<void>;
}

export interface BedOptions {
  readonly limits?: Partial<GatewayLimits>;
  findAddress?(browser: BrowserId): Promise<NodeAddress | undefined>;
  unreachable?(address: NodeAddress): void;
  curl?: LocalBrowser["curl"];
  /** Judges long messages in the place of the default gate. */
  readonly judgeScript?: URL;
  /** The gateway's own; the bridges have another. */
  readonly clock?: Clock;
  /** The clock by which a hold of a page ends by itself, and Chromium's answers to the bridge are awaited. */
  readonly bridgeClock?: Clock;
}

const noCurl: LocalBrowser["curl"] = () => Promise.reject(new Error("this bed has no egress"));

export async function openGatewayBed(
  chromiums: readonly Chromium[],
  options: BedOptions = {},
): Promise<GatewayBed> {
  const counts: Counts = { opened: 0, closed: 0, received: 0, sent: 0, refused: [] };
  const locals = new Map<BrowserId, LocalBrowser>();
  const leases = new Map<BrowserId, LeaseId>();
  for (const chromium of chromiums) {
    locals.set(chromium.id, {
      chromium,
      bridge: new Bridge(chromium.pipe, options.bridgeClock ?? systemClock, {
        sessions: options.limits?.sessions,
      }),
      activity: new Activity(systemClock),
      curl: options.curl ?? noCurl,
      get clientObserver() {
        return bed.observer;
      },
    });
    leases.set(chromium.id, newLeaseId());
  }
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const registered: Registration[] = [];
  const bed: Pick<GatewayBed, "connects" | "observer"> = {
    observer: undefined,
    connects: async ({ browser, lease }) =>
      leases.get(browser) === lease ? { kind: "connected" } : { kind: "gone", reason: "released" },
  };
  const gateway = new Gateway({
    ports: {
      findBrowser: (browser) => locals.get(browser),
      connect: (visiting) => {
        registered.push(visiting);
        return bed.connects(visiting);
      },
      findAddress: options.findAddress ?? (async () => undefined),
      findEnd: async () => undefined,
      ...(options.unreachable && { unreachable: options.unreachable }),
      metrics: {
        clientOpened: () => (counts.opened += 1),
        clientClosed: () => (counts.closed += 1),
        received: (bytes) => (counts.received += bytes),
        sent: (bytes) => (counts.sent += bytes),
        refused: (method) => counts.refused.push(method),
      },
    },
    clock: options.clock ?? systemClock,
    log: silentLog,
    secret: bedSecret,
    publicUrl: `http://127.0.0.1:${port}`,
    gate: defaultGate,
    limits: { ...defaultGatewayLimits, ...options.limits },
    judgeScript: options.judgeScript ?? builtJudge(),
    mapperScript: builtMapper(),
  });
  server.on("upgrade", (incoming, socket, head) => gateway.upgrade(incoming, socket, head));
  server.on("request", (incoming, response) => {
    if (!gateway.request(incoming, response)) response.writeHead(404).end();
  });
  const address = (scheme: string, browser: BrowserId, rest: string): string => {
    const token = tokenOf(bedSecret, browser, leases.get(browser) ?? newLeaseId());
    return `${scheme}://127.0.0.1:${port}/browsers/${browser}/cdp${rest}?token=${token}`;
  };
  return Object.assign(bed, {
    port,
    counts,
    gateway,
    registered,
    local: (browser: BrowserId) => locals.get(browser) ?? fail(`no browser ${browser}`),
    lease: (browser: BrowserId) => leases.get(browser) ?? fail(`no lease of ${browser}`),
    newLease(browser: BrowserId) {
      const lease = newLeaseId();
      leases.set(browser, lease);
      locals.get(browser)?.activity.begin(lease);
    },
    url: (browser: BrowserId, rest = "") => address("ws", browser, rest),
    http: (browser: BrowserId, rest = "") => address("http", browser, rest),
    bidi: (browser: BrowserId) => address("ws", browser, "").replace("/cdp?", "/webdriver/session?"),
    async close() {
      await gateway.close();
      for (const { bridge } of locals.values()) bridge.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

const fail = (message: string): never => {
  throw new Error(message);
};

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
}

const read = (incoming: IncomingMessage): Promise<Answer> =>
  new Promise((resolve, reject) => {
    let text = "";
    incoming
      .setEncoding("utf8")
      .on("data", (chunk: string) => (text += chunk))
      .once("error", reject);
    incoming.once("end", () =>
      resolve({
        status: incoming.statusCode ?? 0,
        headers: incoming.headers,
        body: JSON.parse(text) as Record<string, unknown>,
      }),
    );
  });

export const getJson = (url: string): Promise<Answer> =>
  new Promise((resolve, reject) => {
    get(url, { agent: false }, (incoming) => read(incoming).then(resolve, reject)).once("error", reject);
  });

/** An upgrade that is expected to be answered as HTTP. */
export const refusedUpgrade = (url: string, headers: Record<string, string> = {}): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const asking = request(url.replace(/^ws/, "http"), {
      agent: false,
      headers: {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        ...headers,
      },
    });
    asking.once("response", (incoming) => read(incoming).then(resolve, reject));
    asking.once("upgrade", (_, socket) => {
      socket.destroy();
      reject(new Error("the upgrade was accepted"));
    });
    asking.once("error", reject).end();
  });

/** Everything a server sends in answer to raw bytes, until it ends the connection. */
export const rawAnswer = (port: number, bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket
      .setEncoding("utf8")
      .on("data", (chunk: string) => (text += chunk))
      .once("error", reject);
    socket.once("end", () => {
      socket.destroy();
      resolve(text);
    });
  });
