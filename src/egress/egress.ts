import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Socket } from "node:net";
import type { Millis } from "../base/clock.js";
import { within } from "../base/deadline.js";
import type { BrowserId } from "../base/ids.js";
import { textOf } from "../base/log.js";
import { RateLimit } from "../base/rate-limit.js";
import { turns } from "../base/fair-turns.js";
import { fetchThrough } from "./curl.js";
import { type ProxyExchange, forward, type ForwardParts } from "./forward.js";
import { Bucket, headersMs, keepAliveMs, spareConnections } from "./limits.js";
import { TrafficCounts } from "./byte-counts.js";
import { Origins } from "./origins.js";
import { Connector } from "./connector.js";
import type { CurlAnswer, CurlRequest, EgressParts, EgressUsage, ProxyListener } from "./parts.js";
import { EgressConnections } from "./connections.js";
import { closedRules, type Rules } from "./rules.js";
import { type TunnelRequest, tunnel, upgrade } from "./tunnel.js";

const closeMs = 2000;
/** The part of the event loop for what one browser sends and receives all the time. */
const share = 0.25;
/**
 * The time between two looks at what is idle: a connection may be a quarter over its limit. Bytes are
 * reported as often.
 */
const sweepMs = (idleMs: Millis): Millis => Math.min(idleMs / 4, 15_000);

interface EgressTarget {
  readonly browser: BrowserId;
  readonly rules: Rules;
  readonly listener: ProxyListener;
}

/** The one way out of a browser: a proxy of its own, which lets pass what its rules allow. */
export class Egress {
  readonly #server: Server;
  /** The browser's connections: those that became tunnels the server no longer knows. */
  readonly #inner = new Set<Socket>();
  /** Whether a connection that may be a stranger's is the browser's. */
  readonly #admissions = new WeakMap<Socket, Promise<boolean | undefined>>();
  readonly #strangers: RateLimit;
  readonly #connections: EgressConnections;
  readonly #counts: TrafficCounts;
  readonly #origins = new Origins();
  readonly #shared: ForwardParts;
  readonly #stopSweeping: () => void;
  #closing: Promise<void> | undefined;

  /** Listens, under the rules given, when it resolves. */
  static async open(target: EgressTarget, parts: EgressParts): Promise<Egress> {
    const egress = new Egress(target, parts);
    try {
      await target.listener.listen(egress.#server);
      return egress;
    } catch (error) {
      egress.#stopSweeping();
      throw error;
    }
  }

  private constructor(
    private readonly target: EgressTarget,
    private readonly parts: EgressParts,
  ) {
    const { settings, clock } = parts;
    this.#counts = new TrafficCounts(target.browser, parts.meter);
    const around = { ...parts, browser: target.browser, counts: this.#counts };
    this.#connections = new EgressConnections(around);
    this.#connections.apply(target.rules);
    this.#strangers = new RateLimit({
      clock,
      perSecond: 1,
      onSuppressed: (_, count) => this.#warnOfStrangers(count),
    });
    this.#shared = {
      connections: this.#connections,
      connector: new Connector(around),
      origins: this.#origins,
      pace: { clock, bucket: this.#makeBucket(), turn: turns.open({ share }) },
      headerBytes: settings.headerBytes,
    };
    this.#server = this.#makeServer();
    this.#stopSweeping = clock.every(sweepMs(settings.idleMs), () => this.#sweep());
  }

  get tier(): "namespace" | "proxy" {
    return this.target.listener.tier;
  }

  /** The value of --proxy-server. */
  get proxyUrl(): string {
    return this.target.listener.proxyUrl;
  }

  /** /proc path of its network namespace, for nsenter; absent in the proxy tier. */
  get namespace(): string | undefined {
    return this.target.listener.namespace;
  }

  /** /proc path of the user namespace that owns the other, where that was made without root. */
  get userNamespace(): string | undefined {
    return this.target.listener.userNamespace;
  }

  /**
   * Admits connections of the browser's uid, until the returned function is called; without it nobody's are
   * admitted where browsers have uids of their own.
   */
  admit(uid: number): () => void {
    return this.target.listener.admit?.(uid) ?? (() => {});
  }

  /**
   * Every request obeys from the call on; once this resolves, whatever is open and no longer allowed has been
   * cut.
   */
  async apply(rules: Rules): Promise<void> {
    this.#connections.apply(rules);
    this.#origins.purge();
  }

  /** Lets nothing pass until the next `apply`. */
  shut(): void {
    this.#connections.apply(closedRules);
    this.#origins.purge();
  }

  /**
   * Lets nothing more begin while the rules may be out of date: a process that stood still asks before it
   * acts.
   */
  closeWhile(isStale: () => boolean): void {
    this.#connections.closeWhile(isStale);
  }

  usage(): EgressUsage {
    return this.#counts.usage(this.#connections.size);
  }

  /**
   * A request of the browser's that the browser does not make: same rules, upstreams and counts. Throws
   * `CurlFailure`.
   */
  fetch(request: CurlRequest, signal: AbortSignal): Promise<CurlAnswer> {
    return fetchThrough(request, { ...this.#shared, ...this.parts, signal });
  }

  /** Cuts everything and stops listening; at most 2 s. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#stopSweeping();
    this.shut();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#inner) socket.destroy();
    try {
      await within(this.parts.clock, { what: "closing an egress", limitMs: closeMs }, closed);
    } finally {
      this.target.listener.close();
      this.#connections.close();
      this.#strangers.flush();
      this.#counts.read();
    }
  }

  #makeBucket(): Bucket | undefined {
    const {
      clock,
      settings: { bytesPerSecond },
    } = this.parts;
    return bytesPerSecond === null
      ? undefined
      : new Bucket(bytesPerSecond, clock, () => this.#counts.carried());
  }

  #sweep(): void {
    this.#connections.cutQuiet();
    this.#counts.read();
  }

  #makeServer(): Server {
    const { settings } = this.parts;
    const server = createServer({
      maxHeaderSize: settings.headerBytes,
      headersTimeout: headersMs,
      requestTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: headersMs,
      // The host of the URL counts, not that of the header.
      requireHostHeader: false,
    });
    server.maxConnections = settings.maxConnections + spareConnections;
    server.on("connection", (socket) => {
      this.#inner.add(socket);
      const admission = this.target.listener.admits?.(socket);
      if (admission) {
        this.#admissions.set(socket, admission);
        void admission.then((isOurs) => isOurs || this.#refuse(socket, isOurs));
      }
      // Node.js stops listening for errors when it hands a socket over (Node.js 20.20): a reset must not end
      // the process, whoever has it by then.
      socket.on("error", () => {});
      socket.once("close", () => this.#inner.delete(socket));
    });
    server.on("request", (request, response) =>
      this.#run(request, () => forward({ request, response }, this.#shared)),
    );
    server.on(
      "checkContinue",
      (...[request, response]: [ProxyExchange["request"], ProxyExchange["response"]]) =>
        this.#run(request, () => forward({ request, response }, this.#shared)),
    );
    server.on("connect", (request, socket, head) =>
      this.#run(request, () => tunnel(asking(request, socket, head), this.#shared)),
    );
    server.on("upgrade", (request, socket, head) =>
      this.#run(request, () => upgrade(asking(request, socket, head), this.#shared)),
    );
    return server;
  }

  #run({ socket }: IncomingMessage, work: () => Promise<void>): void {
    const admission = this.#admissions.get(socket);
    (admission ? ifAdmitted(admission, work) : work()).catch((error: unknown) => {
      this.parts.log.error({ browser: this.target.browser, message: textOf(error) }, "egress broke");
      socket.destroy();
    });
  }

  /**
   * Takes from a stranger the place of one of the browser's own connections, which it would keep for as long
   * as a head may take. A connection that its process has closed already may have been the browser's.
   */
  #refuse(socket: Socket, isOurs: false | undefined): void {
    socket.destroy();
    if (isOurs === false && !this.#closing && this.#strangers.admits("strangers")) this.#warnOfStrangers(1);
  }

  #warnOfStrangers(count: number): void {
    this.parts.log.warn({ browser: this.target.browser, count }, "stranger refused by an egress");
  }
}

async function ifAdmitted(admission: Promise<boolean | undefined>, work: () => Promise<void>): Promise<void> {
  if (await admission) await work();
}

/** The server is a plain one, so what it hands over is a TCP socket. */
const asking = (request: IncomingMessage, socket: unknown, head: Buffer): TunnelRequest => ({
  request,
  socket: socket as Socket,
  head,
});
