import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocketServer } from "ws";
import type { Clock, Millis } from "../base/clock.js";
import { TimeLimitReached, within } from "../base/deadline.js";
import { type BrowserId, type LeaseId, newConnectionId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import { findTrace } from "../base/trace-context.js";
import type { Visit, Visitor } from "./activity.js";
import { goneBecause, overBecause, type GatewayRefusal, refuseUpgrade } from "./refusals.js";
import type { RootTarget, BridgeConnection } from "./cdp/connection.js";
import { CdpClient, type SharedParts } from "./client.js";
import { closeCodes } from "./close-codes.js";
import type { Gate } from "./gates/gate.js";
import type { GatewayLimits } from "./limits.js";
import { ObservedClient } from "./observed-client.js";
import type { GatewayPorts, LocalBrowser } from "./ports.js";
import type { FairTurn } from "../base/fair-turns.js";
import { RunningMapper } from "./bidi/running-mapper.js";
import type { WantedSession } from "./bidi/socket.js";
import type { OpenTranslator } from "./translator.js";

export interface UpgradeRequest {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
}

export interface HandshakeTarget {
  readonly id: BrowserId;
  readonly lease: LeaseId;
  readonly browser: LocalBrowser;
  readonly root: RootTarget;
  /** Set where the client speaks WebDriver BiDi. */
  readonly bidi?: WantedSession | undefined;
}

interface HandshakeParts {
  readonly ports: Pick<GatewayPorts, "connect" | "metrics">;
  readonly webSockets: WebSocketServer;
  readonly shared: SharedParts;
  /** The turn of the browser. */
  readonly turn: FairTurn;
  readonly clock: Clock;
  readonly log: Log;
  readonly gate: Gate;
  readonly limits: GatewayLimits;
  readonly mapperScript: URL;
}

/** A browser that works does not restart more often than this within one upgrade. */
const mostJoins = 3;

/**
 * One client from its upgrade to its end. Registered in Redis, then attached in Chromium, then accepted:
 * whatever fails before is still an HTTP answer. The fence may cut it at any of these points. One that meets
 * a restart of the browser waits for it.
 */
export class Handshake implements Visitor {
  #client: CdpClient | undefined;
  #visit: Visit | undefined;
  /**
   * Pending from when Chromium is asked for a session of the client until that is settled: a cut waits for
   * it.
   */
  #joining: Promise<boolean> | undefined;
  #cutReason: string | undefined;
  #isOpen = false;
  readonly #arrivedAt: Millis;

  constructor(
    private readonly upgrade: UpgradeRequest,
    private readonly target: HandshakeTarget,
    private readonly parts: HandshakeParts,
  ) {
    this.#arrivedAt = parts.clock.monotonic();
    void this.#open();
  }

  /** Whether this is a client of the given session of WebDriver. */
  isOf(browser: BrowserId, session: string): boolean {
    return this.target.id === browser && this.target.bidi?.id === session;
  }

  get isConnected(): boolean {
    return this.#client?.isConnected ?? false;
  }

  async cut(reason: string): Promise<void> {
    return this.end(closeCodes.leaseOver, reason);
  }

  /**
   * Resolves when a connected client has been told; one that is still to be attached is for the browser as it
   * is then.
   */
  async interrupt(reason: string): Promise<void> {
    if (this.#isOpen) await this.#client?.end(closeCodes.restart, reason);
  }

  /** Ends it at once, at whatever point it is; resolves when Chromium has detached it. */
  async end(code: number, reason: string): Promise<void> {
    this.#cutReason ??= reason;
    if (!this.#isOpen) refuseUpgrade(this.upgrade.socket, goneBecause(reason));
    await this.#joining?.catch(() => {});
    await this.#client?.end(code, reason);
  }

  async #open(): Promise<void> {
    const { target } = this;
    this.#visit = target.browser.activity.enter(target.lease, this);
    if (!this.#visit) return this.#refuse(overBecause(target.browser, target.lease));
    try {
      const refused = await this.#register();
      if (refused) return this.#refuse(refused);
      await this.#join();
    } catch (error) {
      this.parts.log.warn(
        { browser: target.id, lease: target.lease, error: textOf(error) },
        "client could not be connected",
      );
      this.#refuse({ code: "unavailable" });
    }
  }

  async #register(): Promise<GatewayRefusal | undefined> {
    const { target, parts } = this;
    const asking = parts.ports.connect({ browser: target.id, lease: target.lease, kind: "client" });
    const registered = await within(
      parts.clock,
      { what: "registration of a client", limitMs: parts.limits.connectMs },
      asking,
    );
    if (registered.kind === "gone") return goneBecause(registered.reason);
    if (!this.#visit?.confirm()) return overBecause(target.browser, target.lease);
    await registered.inForce;
    await this.#ready(registered.ready);
    return undefined;
  }

  async #ready(ready: Promise<unknown> | undefined): Promise<void> {
    if (!ready) return;
    const limit = { what: "dispatch of the start_url", limitMs: this.parts.limits.readyMs };
    await within(this.parts.clock, limit, ready).catch((error: unknown) => {
      if (!(error instanceof TimeLimitReached))
        this.parts.log.warn({ error: textOf(error) }, "start_url was not dispatched");
    });
  }

  async #join(): Promise<void> {
    for (let joins = 0; joins < mostJoins; joins += 1) {
      await awaitRestart(this.target.browser, this.parts);
      if (this.#cutReason !== undefined) return this.#refuse(goneBecause(this.#cutReason));
      this.#joining = this.#joinOnce();
      if (await this.#joining) return;
    }
    this.#refuse({ code: "unavailable", message: "The browser is being restarted" });
  }

  /** False where the browser was restarted meanwhile. */
  async #joinOnce(): Promise<boolean> {
    const { browser, root } = this.target;
    const { bridge } = browser;
    const client = this.#makeClient();
    const bridgeConnection = await bridge.join(client, root).catch((error: unknown) => {
      if (!browser.restarting && browser.bridge === bridge) throw error;
      return "restarted" as const;
    });
    if (bridgeConnection === "restarted") return false;
    if (bridgeConnection && browser.restarting) {
      // It belongs to a Chromium that is being replaced.
      await bridgeConnection.detach().catch(() => {});
      return false;
    }
    this.#client = client;
    if (bridgeConnection) await this.#accept(client, bridgeConnection);
    else this.#refuse({ code: "not_found", message: "There is no such target" });
    return true;
  }

  #makeClient(): CdpClient {
    const {
      upgrade: { socket, request },
      target: { id, lease, browser, bidi },
      parts,
    } = this;
    const { chromium } = browser;
    const observed = new ObservedClient(browser, {
      id: newConnectionId(),
      lease,
      protocol: bidi ? "bidi" : "cdp",
      arrivedAt: this.#arrivedAt,
      openedAt: parts.clock.monotonic(),
      trace: findTrace(request.headers),
    });
    return new CdpClient({
      browser: id,
      shared: parts.shared,
      turn: parts.turn,
      socket,
      pipe: chromium.pipe,
      clock: parts.clock,
      limits: parts.limits,
      gate: parts.gate,
      translator: bidi && this.#translator(bidi),
      context: { directories: chromium.directories },
      traffic: parts.ports.metrics,
      observed,
      onGone: () => this.#gone(observed),
    });
  }

  #translator({ options, ...session }: WantedSession): OpenTranslator {
    const {
      target: {
        id,
        browser: { chromium },
      },
      parts: { mapperScript: script, log, clock, limits, shared },
    } = this;
    const setup = { session: { ...session, ...chromium.version }, ...(options && { options }) };
    return (callbacks) =>
      new RunningMapper({ browser: id, script, setup, chromium, log, clock, limits, shared }, callbacks);
  }

  async #accept(client: CdpClient, bridgeConnection: BridgeConnection): Promise<void> {
    const { request, socket, head } = this.upgrade;
    const isWanted = this.#cutReason === undefined && !socket.destroyed;
    if (isWanted) {
      this.parts.webSockets.handleUpgrade(request, socket, head, (webSocket) => {
        this.#isOpen = true;
        this.parts.ports.metrics.clientOpened();
        client.start(webSocket, bridgeConnection);
      });
    }
    if (this.#isOpen) return;
    this.#endVisit();
    await bridgeConnection.detach();
  }

  #refuse(refused: GatewayRefusal): void {
    refuseUpgrade(this.upgrade.socket, refused);
    this.#endVisit();
  }

  #gone(observed: ObservedClient): void {
    this.parts.ports.metrics.clientClosed();
    observed.gone();
    this.#endVisit();
  }

  #endVisit(): void {
    this.#visit?.end();
    this.#visit = undefined;
  }
}

/** Throws where the restart takes longer than a client should wait. */
export async function awaitRestart(
  { restarting }: LocalBrowser,
  { clock, limits }: Pick<HandshakeParts, "clock" | "limits">,
): Promise<void> {
  if (restarting)
    await within(clock, { what: "a restart of the browser", limitMs: limits.restartMs }, restarting);
}
