import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { Clock } from "../base/clock.js";
import { within } from "../base/deadline.js";
import type { BrowserId, LeaseId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { Secret } from "../base/crypto/secret.js";
import type { Visit } from "./activity.js";
import {
  answerJson,
  goneBecause,
  identify,
  isGatewayRefusal,
  overBecause,
  type GatewayRefusal,
  refuseRequest,
  refuseUpgrade,
} from "./refusals.js";
import { Budget } from "../base/budget.js";
import { type FairTurn, turns } from "../base/fair-turns.js";
import type { SharedParts } from "./client.js";
import { closeCodes } from "./close-codes.js";
import { ClientCounts, PageCounts } from "./client-counts.js";
import { answerClassic } from "./bidi/classic.js";
import { BidiSeats } from "./bidi/seats.js";
import { wantedSession } from "./bidi/socket.js";
import { answerCurl, observeCurl, runCurl } from "./curl.js";
import { listPage, versionPage } from "./discovery.js";
import { findBrowserOf, type BrowserLocation } from "./find-browser.js";
import { KeptConnections } from "./relay/kept-connections.js";
import { forwardRequest, forwardUpgrade, type RelayRoute } from "./relay/forward.js";
import type { Gate } from "./gates/gate.js";
import { JudgeThreads } from "./gates/judge-threads.js";
import type { GatewayLimits } from "./limits.js";
import { awaitRestart, Handshake, type HandshakeTarget, type UpgradeRequest } from "./handshake.js";
import { findPath, type Path } from "./paths.js";
import type { GatewayPorts, LocalBrowser, NodeAddress } from "./ports.js";

interface GatewayParts {
  readonly ports: GatewayPorts;
  readonly clock: Clock;
  readonly log: Log;
  readonly secret: Secret;
  /** `http(s)://…` as clients reach any daemon. */
  readonly publicUrl: string;
  readonly gate: Gate;
  readonly limits: GatewayLimits;
  /** judge-worker.js, which judges by the default gate. */
  readonly judgeScript: URL;
  readonly standstill?: SharedParts["standstill"];
  /** mapper-process.js, which translates WebDriver BiDi for one client. */
  readonly mapperScript: URL;
}

/** A request, its answer, and the end of whoever waits for it. */
interface AbortableExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly gone: AbortController;
}

const longestCurlMs = 60_000;
const onlySockets = "This address is for WebSocket clients";
const notWebSocket: GatewayRefusal = { code: "bad_request", message: onlySockets };
/** Some clients send their message in parts; 16 MiB need no more. */
const mostFragments = 1024;
/** Pieces in which what is not whole of a message may come. */
const mostPieces = 64 * 1024;

/**
 * Checks tokens, serves discovery, joins clients to the bridge of their browser, or sends them on to its
 * node.
 */
export class Gateway {
  readonly #handshakes = new Set<Handshake>();
  readonly #forwards = new Set<() => void>();
  readonly #kept = new KeptConnections();
  readonly #webSockets: WebSocketServer;
  readonly #clients: ClientCounts;
  readonly #bidiSeats: BidiSeats;
  readonly #pages = new PageCounts();
  readonly #judges: JudgeThreads;
  readonly #shared: SharedParts;
  readonly #curls: Budget;
  readonly #curlTurns = new WeakMap<LocalBrowser, FairTurn>();

  constructor(private readonly parts: GatewayParts) {
    const { limits, clock, log } = parts;
    this.#webSockets = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: limits.messageBytes,
      maxFragments: mostFragments,
      maxBufferedChunks: mostPieces,
      // ws gives one message of each client in a round of the event loop, however many came at once.
      allowSynchronousEvents: false,
    });
    this.#clients = new ClientCounts({ most: limits.clients, bytesPerSecond: limits.clientBytesPerSecond });
    this.#bidiSeats = new BidiSeats(limits.bidiClients);
    this.#judges = new JudgeThreads({
      script: parts.judgeScript,
      clock,
      log,
      longestBytes: limits.messageBytes,
    });
    this.#shared = {
      judgeThreads: this.#judges,
      standstill: parts.standstill,
      unfinished: new Budget(limits.unfinished),
      unread: new Budget(limits.unread),
    };
    this.#curls = new Budget(limits.curl, "asking");
    this.#webSockets.on("wsClientError", (_, socket) => refuseUpgrade(socket, notWebSocket));
  }

  /** Takes every upgrade of the server: what is not ours is answered 404. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy());
    this.#open({ request, socket, head }).catch((error: unknown) =>
      refuseUpgrade(socket, this.#failed(error)),
    );
  }

  /** Returns false, and does nothing, where the path is none of the gateway's. */
  request(request: IncomingMessage, response: ServerResponse): boolean {
    const path = findPath(request);
    if (!path) return false;
    this.#answer(path, request, response).catch((error: unknown) =>
      refuseRequest(response, this.#failed(error)),
    );
    return true;
  }

  /** Ends every client of this daemon; resolves when Chromium has detached them. */
  async close(): Promise<void> {
    for (const end of this.#forwards) end();
    this.#kept.close();
    const ends = [...this.#handshakes].map((handshake) =>
      handshake.end(closeCodes.goingAway, "this daemon is stopping"),
    );
    await Promise.allSettled(ends);
    await this.#judges.close();
  }

  async #open(upgrade: UpgradeRequest): Promise<void> {
    const { request, socket } = upgrade;
    const path = findPath(request);
    if (!path) return refuseUpgrade(socket, { code: "route_not_found" });
    const found = await findBrowserOf(path, request, this.parts);
    if (socket.destroyed) return;
    if (isGatewayRefusal(found)) return refuseUpgrade(socket, found);
    const wanted = this.#wantedOf(path, request);
    if (isGatewayRefusal(wanted)) return refuseUpgrade(socket, wanted);
    const turn = this.#clients.enter(found.lease);
    if (!turn) return refuseUpgrade(socket, { code: "too_many_clients" });
    socket.once("close", () => this.#clients.remove(found.lease));
    if (found.kind === "elsewhere") return this.#forward(upgrade, found.address);
    if (wanted.bidi && !this.#takeSeat(found.lease, socket))
      return refuseUpgrade(socket, { code: "too_many_clients" });
    this.#judges.open();
    const handshake = new Handshake(
      upgrade,
      { id: path.browser, lease: found.lease, browser: found.browser, ...wanted },
      { ...this.parts, turn, shared: this.#shared, webSockets: this.#webSockets },
    );
    this.#handshakes.add(handshake);
    socket.once("close", () => this.#handshakes.delete(handshake));
  }

  #wantedOf(path: Path, request: IncomingMessage): Pick<HandshakeTarget, "root" | "bidi"> | GatewayRefusal {
    const { wanted } = path;
    if (!isWebSocket(request)) return notWebSocket;
    if (wanted.kind === "client") return { root: wanted.root };
    if (wanted.kind !== "webdriver") return notWebSocket;
    const bidi = wantedSession(path, wanted, this.parts.publicUrl);
    return isGatewayRefusal(bidi) ? bidi : { root: { kind: "browser" }, bidi };
  }
  #takeSeat(lease: LeaseId, socket: Duplex): boolean {
    if (!this.#bidiSeats.enter(lease)) return false;
    socket.once("close", () => this.#bidiSeats.release(lease));
    return true;
  }

  #forward(upgrade: UpgradeRequest, address: NodeAddress): void {
    const end = forwardUpgrade(upgrade, this.#route(address, this.parts.limits));
    this.#forwards.add(end);
    upgrade.socket.once("close", () => this.#forwards.delete(end));
  }

  #route(address: NodeAddress, limits: RelayRoute["limits"]): RelayRoute {
    const { clock, ports } = this.parts;
    return { address, clock, kept: this.#kept, limits, unreachable: () => ports.unreachable?.(address) };
  }

  async #answer(path: Path, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const found = await findBrowserOf(path, request, this.parts);
    if (isGatewayRefusal(found)) return refuseRequest(response, found);
    if (path.wanted.kind !== "curl" && !(await this.#pages.enter(found.lease, response)))
      return refuseRequest(response, { code: "too_many_requests" });
    if (found.kind === "elsewhere")
      return forwardRequest({ request, response, route: this.#route(found.address, this.#limitsOf(path)) });
    if (path.wanted.kind === "client") return refuseRequest(response, notWebSocket);
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const cut = async (reason: string): Promise<void> => {
      refuseRequest(response, goneBecause(reason));
      gone.abort();
    };
    const visit = found.browser.activity.enter(found.lease, { cut });
    if (!visit) return refuseRequest(response, overBecause(found.browser, found.lease));
    try {
      const refused = await this.#register(path, found, visit);
      if (refused) return refuseRequest(response, refused);
      if (path.wanted.kind === "curl")
        await this.#curl({ id: path.browser, ...found }, { request, response, gone });
      else if (path.wanted.kind === "webdriver")
        await answerClassic(path.wanted.command, { request, response }, this.#classic(path, found.browser));
      else answerJson(response, await this.#page(path, found.browser));
    } finally {
      visit.end();
    }
  }

  async #curl(
    { id, lease, browser }: { id: BrowserId; lease: LeaseId; browser: LocalBrowser },
    { request, response, gone }: AbortableExchange,
  ): Promise<void> {
    const { signal } = gone;
    const { clock, limits } = this.parts;
    const observed = { browser, lease, request: identify(request, response), clock };
    observeCurl(response, signal, observed);
    const account = this.#curls.open(id, () => {
      refuseRequest(response, { code: "too_many_requests" });
      gone.abort();
    });
    response.once("close", () => account.close());
    const kept = (bytes: number): void => void (signal.aborted || account.set(bytes));
    const turn = this.#curlTurns.get(browser) ?? turns.open();
    this.#curlTurns.set(browser, turn);
    const answer = await runCurl(request, { curl: browser.curl, gone: signal, kept, turn });
    if (response.headersSent) return;
    if (isGatewayRefusal(answer)) refuseRequest(response, answer);
    else await answerCurl(response, answer, { turn, clock, holdMs: limits.holdMs });
  }

  /** A request through the browser's way out may itself take a minute. */
  #limitsOf({ wanted }: Path): GatewayLimits {
    const { limits } = this.parts;
    return wanted.kind === "curl" ? { ...limits, answerMs: limits.answerMs + longestCurlMs } : limits;
  }

  async #register(
    path: Path,
    { lease, browser }: Extract<BrowserLocation, { kind: "here" }>,
    visit: Visit,
  ): Promise<GatewayRefusal | undefined> {
    const { ports, clock, limits } = this.parts;
    const asking = ports.connect({ browser: path.browser, lease, kind: "request" });
    const registered = await within(
      clock,
      { what: "registration of a request", limitMs: limits.connectMs },
      asking,
    );
    if (registered.kind === "gone") return goneBecause(registered.reason);
    return visit.confirm() ? undefined : overBecause(browser, lease);
  }

  async #page(path: Path, browser: LocalBrowser): Promise<object> {
    await awaitRestart(browser, this.parts);
    const { chromium, bridge } = browser;
    const at = { publicUrl: this.parts.publicUrl, browser: path.browser, token: path.token };
    return path.wanted.kind === "list" ? listPage(at, await bridge.targets()) : versionPage(at, chromium);
  }

  #classic(
    { browser, token }: Path,
    { chromium: { version }, bridge }: LocalBrowser,
  ): Parameters<typeof answerClassic>[2] {
    const endSession = (session: string): void => {
      const ended = [...this.#handshakes].filter((handshake) => handshake.isOf(browser, session));
      // A browser that does not answer has its client cut all the same, and ends nobody else.
      for (const each of ended) each.end(closeCodes.asked, "the session was deleted").catch(() => {});
    };
    const windows = async (): Promise<string[]> =>
      (await bridge.targets()).filter(({ type }) => type === "page").map(({ targetId }) => targetId);
    return { publicUrl: this.parts.publicUrl, browser, token, version, windows, endSession };
  }

  #failed(error: unknown): GatewayRefusal {
    this.parts.log.warn({ error: textOf(error) }, "gateway request failed");
    return { code: "unavailable" };
  }
}

const isWebSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === "GET" &&
  headers.upgrade?.toLowerCase() === "websocket" &&
  headers["sec-websocket-key"] !== undefined;
