import { setMaxListeners } from "node:events";
import type { Socket } from "node:net";
import { type Clock, type Millis, pause } from "../base/clock.js";
import type { BrowserId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import { Denials } from "./denials.js";
import { RateLimit } from "../base/rate-limit.js";
import { destroySocket, rawSocketOf } from "./dial.js";
import type { TrafficCounts } from "./byte-counts.js";
import type { EgressParts } from "./parts.js";
import { denialDelayMs, promptDenials } from "./limits.js";
import {
  closedRules,
  type DeniedBy,
  isStillAllowed,
  judgeTarget,
  type Rules,
  type TargetHost,
  type Route,
} from "./rules.js";

export type OpenRoute = Exclude<Route, { readonly kind: "denied" }>;

/**
 * What reaches the target: `address` where it was dialled directly, else the upstream of the way carries it.
 */
export interface TargetSocket {
  readonly socket: Socket;
  readonly address?: string | undefined;
}

/** One attempt at reaching a target; `signal` aborts when the rules change meanwhile. */
export interface ConnectAttempt {
  readonly until: Millis;
  readonly signal: AbortSignal;
  readonly generation: number;
}

type Connect = (route: OpenRoute, attempt: ConnectAttempt) => Promise<TargetSocket>;

export type EntryResult =
  | { readonly kind: "open"; readonly connection: OpenConnection }
  | { readonly kind: "denied"; readonly by: DeniedBy; readonly message: string }
  /** `message` contains no secret. */
  | { readonly kind: "failed"; readonly message: string };

interface HeldConnection {
  readonly target: TargetHost;
  readonly route: OpenRoute;
  readonly connection: TargetSocket;
  readonly clock: Clock;
  readonly forget: (connection: OpenConnection) => void;
}

/** A tunnel or a request that is open: until whoever uses it ends it, or it is cut. */
export class OpenConnection {
  /** What it had carried when the bytes were last looked at, and since when that has not changed. */
  #bytes = 0;
  #quietSince: Millis;
  #onCut = (): void => {};
  #isReleased = false;
  #isCut = false;

  constructor(private readonly held: HeldConnection) {
    this.#quietSince = held.clock.monotonic();
  }

  get route(): OpenRoute {
    return this.held.route;
  }

  get connection(): TargetSocket {
    return this.held.connection;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  onCut(listener: () => void): void {
    this.#onCut = listener;
  }

  /** The connection may now be another's; only what it gave is still being handed on. */
  release(): void {
    this.#isReleased = true;
  }

  end(): void {
    this.held.forget(this);
  }

  /** Once this returns, nothing more leaves through the connection. */
  cut(): void {
    this.#isCut = true;
    if (!this.#isReleased) destroySocket(this.connection.socket);
    this.end();
    this.#onCut();
  }

  isAllowedBy(rules: Rules): boolean {
    const {
      route,
      target,
      connection: { address },
    } = this.held;
    if (route.kind === "upstream") return isStillAllowed(rules, { ...target, upstreamId: route.upstream.id });
    return isStillAllowed(rules, { ...target, ...(address !== undefined && { address }) });
  }

  /** How long nothing has moved. */
  quietMs(now: Millis): Millis {
    const { bytesRead, bytesWritten } = rawSocketOf(this.connection.socket);
    if (bytesRead + bytesWritten !== this.#bytes) this.#quietSince = now;
    this.#bytes = bytesRead + bytesWritten;
    return now - this.#quietSince;
  }
}

interface EgressConnectionsParts extends Pick<
  EgressParts,
  "settings" | "resolve" | "reserved" | "clock" | "refused"
> {
  readonly browser: BrowserId;
  readonly log: Log;
  readonly counts: TrafficCounts;
}

/**
 * Everything one browser has open, and the rules under which it may be: the only way to a connection
 * outwards.
 */
export class EgressConnections {
  #rules: Rules = closedRules;
  /** Raised by every change of the rules: what was judged under an older one is judged again. */
  #generation = 0;
  /** Requests on their way to a connection. */
  #entering = 0;
  #changing = newController();
  #isStale = (): boolean => false;
  readonly #open = new Set<OpenConnection>();
  readonly #denials: Denials;
  readonly #promptDenials: RateLimit;

  constructor(private readonly parts: EgressConnectionsParts) {
    this.#denials = new Denials(parts);
    this.#promptDenials = new RateLimit({
      clock: parts.clock,
      perSecond: promptDenials,
      onSuppressed: () => {},
    });
  }

  get size(): number {
    return this.#open.size + this.#entering;
  }

  /**
   * Once this returns, every request obeys the new rules, and whatever is open and no longer allowed is cut.
   */
  apply(rules: Rules): void {
    this.#rules = rules;
    this.#generation += 1;
    this.#changing.abort();
    this.#changing = newController();
    for (const connection of this.#open) {
      if (!connection.isAllowedBy(rules)) connection.cut();
    }
  }

  /** Lets nothing more begin while the rules may be out of date, which is asked at each step. */
  closeWhile(isStale: () => boolean): void {
    this.#isStale = isStale;
  }

  /** Judges the target, connects to it and holds it open until it is ended or cut. */
  async enter(target: TargetHost, connect: Connect): Promise<EntryResult> {
    const { counts, settings } = this.parts;
    counts.request();
    if (this.size >= settings.maxConnections)
      return await this.#deny(target, "limit", "The browser has too many connections open");
    this.#entering += 1;
    try {
      return await this.#enter(target, connect);
    } finally {
      this.#entering -= 1;
    }
  }

  /** Says what is still to be said of what was denied. */
  close(): void {
    this.#denials.close();
    this.#promptDenials.flush();
  }

  cutQuiet(): void {
    const { clock, settings } = this.parts;
    const now = clock.monotonic();
    for (const connection of this.#open) {
      if (connection.quietMs(now) >= settings.idleMs) connection.cut();
    }
  }

  async #enter(target: TargetHost, connect: Connect): Promise<EntryResult> {
    const { clock, settings } = this.parts;
    const until = clock.monotonic() + settings.connectMs;
    while (clock.monotonic() < until) {
      const entry = await this.#attempt(target, connect, until);
      if (entry) return entry;
    }
    return this.#fail(target, "The rules changed too often meanwhile");
  }

  /** undefined: the rules were changed meanwhile, and what was found out is void. */
  async #attempt(target: TargetHost, connect: Connect, until: Millis): Promise<EntryResult | undefined> {
    const { clock, counts } = this.parts;
    const generation = this.#generation;
    // The resolver has a limit of its own.
    const rules = this.#isStale() ? closedRules : this.#rules;
    const route = await judgeTarget(rules, target, this.parts);
    if (generation !== this.#generation) return undefined;
    if (route.kind === "denied") return await this.#deny(target, route.by, route.message);
    const reached = await reach(connect, route, { until, signal: this.#changing.signal, generation });
    if (generation !== this.#generation || this.#isStale()) {
      if ("socket" in reached) destroySocket(reached.socket);
      return undefined;
    }
    counts.passed(route.kind);
    if (!("socket" in reached)) return this.#fail(target, reached.failure);
    const connection = new OpenConnection({
      target,
      route,
      connection: reached,
      clock,
      forget: (ended) => this.#open.delete(ended),
    });
    this.#open.add(connection);
    return { kind: "open", connection };
  }

  /**
   * A page that asks again as soon as it is denied would be everybody's load: beyond a number it waits for
   * the answer.
   */
  async #deny(target: TargetHost, by: DeniedBy, message: string): Promise<EntryResult> {
    this.parts.counts.denied(by);
    this.#denials.add(by, target);
    this.parts.refused?.(target.host, by);
    if (!this.#promptDenials.admits("denied")) await pause(this.parts.clock, denialDelayMs);
    return { kind: "denied", by, message };
  }

  #fail({ host, port }: TargetHost, message: string): EntryResult {
    this.parts.log.debug({ browser: this.parts.browser, host, port, message }, "egress failed");
    this.parts.refused?.(host, "failed");
    return { kind: "failed", message };
  }
}

async function reach(
  connect: Connect,
  route: OpenRoute,
  attempt: ConnectAttempt,
): Promise<TargetSocket | { readonly failure: string }> {
  try {
    return await connect(route, attempt);
  } catch (error) {
    return { failure: textOf(error) };
  }
}

/** Many requests listen to it at once. */
function newController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
