import type { FastifyReply, FastifyRequest } from "fastify";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type NewEntry, unheardStatus } from "../audit/entry.js";
import type { AuditRecorder } from "../audit/writer.js";
import type { Clock, Millis } from "../base/clock.js";
import { withoutKeys } from "../base/crypto/key-text.js";
import { newRequestId } from "../base/ids.js";
import { FreeList } from "../base/free-list.js";
import { errors, RemudaError, type Refusal } from "../base/errors.js";
import type { App } from "./bare-app.js";
import { refusalOfError, showRefusal } from "./errors.js";
import { isDocsPath } from "./docs/docs-path.js";
import { isInterceptedPath } from "./request-interceptor.js";
import { pathOf } from "./request-path.js";

declare module "fastify" {
  interface FastifyContextConfig {
    /**
     * `first`: refused where its entry cannot be recorded, and answered when it is. `started`: recorded when
     * its response starts, since that may last.
     */
    readonly audit?: "first" | "started";
  }
}

/** Marks routes that change who may do what, or where secrets and the log itself go (docs/audit.md). */
export const recordedFirst = { config: { audit: "first" } } as const;

/** What nginx logs for a caller that has hung up. */
const hungUp = 499;
/** Texts that callers choose are cut: entries stand in Redis. */
const longest = { path: 1024, userAgent: 512, domain: 255, method: 32 } as const;

/** Probes ask often and change nothing, and nodes speak among themselves. */
const unrecorded: readonly string[] = ["/healthz", "/readyz", "/metrics", "/node/messages"];

/** What is known of a request until its entry is made. */
class PendingEntry {
  /** Once it is routed. */
  request: FastifyRequest | undefined = undefined;
  isRecorded = false;
  /** Whether it is to make a change, which is made whether its caller waits for the answer or not. */
  isChange = false;
  /** What is on record of that already, or may be. */
  intent: string | undefined = undefined;

  readonly path: string;
  /** What it is answered with; a socket has none. */
  response: ServerResponse | undefined = undefined;
  /** Its place among all that are open. */
  place = 0;

  constructor(
    readonly raw: IncomingMessage,
    readonly receivedAt: Millis,
    /** A connection that has closed no longer tells it. */
    readonly clientIp: string,
  ) {
    this.path = pathOf(raw.url ?? "");
  }
}

/**
 * The key under which a request keeps what was observed of it; a WeakMap of requests would be much work for
 * the garbage collector.
 */
const observation = Symbol("observation");
declare module "node:http" {
  interface IncomingMessage {
    [observation]?: PendingEntry;
  }
}

/**
 * An answer that somebody reads for longer is recorded before its end: `longestMs` is for the slowest entry.
 */
const longAnswerMs: Millis = 1_800_000;

/** Leaves one entry in the audit log for each request that is made to the API. */
export class AuditTrail {
  readonly #open = new FreeList<PendingEntry>();

  constructor(
    private readonly recorder: AuditRecorder,
    private readonly clock: Clock,
    private readonly addressOf: (raw: IncomingMessage) => string,
  ) {}

  /** To be told of each request before anybody else is. */
  received(raw: IncomingMessage, response: ServerResponse): void {
    const observed = this.#observe(raw);
    if (!observed) return;
    if (isInterceptedPath(raw.url ?? "")) onStart(response, (status) => this.#record(observed, status));
    observed.response = response;
    observed.place = this.#open.add(observed);
    response.on("close", () => {
      this.#open.remove(observed.place, observed);
      this.#record(observed, statusOf(response));
    });
  }

  /** Records answers that have begun and that somebody reads for long. To be called every few minutes. */
  recordLong(): void {
    const before = this.clock.monotonic() - longAnswerMs;
    for (const observed of this.#open.all()) {
      const { response, receivedAt } = observed;
      if (receivedAt < before && response?.headersSent) this.#record(observed, response.statusCode);
    }
  }

  /** Records one that is refused before anybody is told of it. */
  refused(raw: IncomingMessage, { code }: Refusal): void {
    const observed = raw[observation] ?? this.#observe(raw);
    if (observed) this.#record(observed, errors[code].status);
  }

  /** A socket is recorded when it is answered, by whomever; or when it closes without an answer. */
  upgrading(raw: IncomingMessage, socket: Duplex): void {
    const observed = this.#observe(raw);
    if (!observed) return;
    onFirstWrite(socket, (status) => this.#record(observed, status));
    socket.once("close", () => this.#record(observed, hungUp));
  }

  /** Tells of each request how the app knows it, and keeps what its route asks for. */
  watch(app: App): void {
    app.addHook("onRequest", (request, reply, next) => {
      const observed = request.raw[observation];
      if (observed) {
        observed.request = request;
        if (request.routeOptions.config?.audit === "started")
          onStart(reply.raw, (status) => this.#record(observed, status));
      }
      next();
    });
    app.addHook("onRoute", (route) => {
      if (route.config?.audit !== "first") return;
      route.preHandler = [
        ...[route.preHandler ?? []].flat(),
        (request: FastifyRequest) => this.#begin(request),
      ];
      route.onSend = [...[route.onSend ?? []].flat(), (request, reply) => this.#recordFirst(request, reply)];
    });
  }

  async #begin({ raw }: FastifyRequest): Promise<void> {
    const observed = raw[observation];
    if (!observed) return;
    // What became of a change could not be recorded once its request is: that of who hung up is not made.
    if (observed.isRecorded) throw new RemudaError("unavailable");
    observed.isChange = true;
    const entry = this.#entryOf(observed, unheardStatus);
    observed.intent = newRequestId();
    try {
      await this.recorder.begin(observed.intent, entry);
    } catch (error) {
      observed.isChange = false;
      throw error;
    }
  }

  /** Gives another answer where that to a refused change could not be recorded. */
  async #recordFirst({ raw }: FastifyRequest, reply: FastifyReply): Promise<string | undefined> {
    const status = reply.statusCode;
    const observed = raw[observation];
    if (!observed || observed.isRecorded) return undefined;
    // A refusal that has changed nothing is answered as it is, whatever becomes of its entry.
    if (!observed.isChange) {
      this.#record(observed, status);
      return undefined;
    }
    observed.isRecorded = true;
    try {
      await this.recorder.recordNow(this.#entryOf(observed, status));
      return undefined;
    } catch (cause) {
      // A change that was made is not to be made once more by a client that repeats what has failed.
      if (status < 400) throw new RemudaError("audit_unconfirmed", { cause });
      // Fastify 5 answers `{}` where another error is thrown after one that it has handled. Who is told that
      // it may have been done is told that all the same.
      return status >= 500 ? undefined : showRefusal(reply, refusalOfError(cause));
    }
  }

  /** Undefined for what leaves no entry. */
  #observe(raw: IncomingMessage): PendingEntry | undefined {
    const observed = new PendingEntry(raw, this.clock.monotonic(), this.addressOf(raw));
    if (unrecorded.includes(observed.path) || isDocsPath(raw.url ?? "")) return undefined;
    return (raw[observation] = observed);
  }

  /** A change is recorded with what came of it, though its caller may have hung up before. */
  #record(observed: PendingEntry, status: number): void {
    if (observed.isRecorded || observed.isChange) return;
    observed.isRecorded = true;
    this.recorder.record(this.#entryOf(observed, status));
  }

  /** Written out in one literal: each request makes one, and spreading objects is slower. */
  #entryOf({ raw, path, request, receivedAt, clientIp, intent }: PendingEntry, status: number): NewEntry {
    const { authStrategy, userId, email } = callerOf(raw, request);
    return {
      receivedAt,
      durationMs: this.clock.monotonic() - receivedAt,
      authStrategy,
      userId,
      email,
      status,
      method: (raw.method ?? "").slice(0, longest.method),
      path: path.slice(0, longest.path),
      route: request ? templateOf(request.routeOptions.url ?? "") : frontTemplateOf(path),
      domain: domainOf(raw).slice(0, longest.domain),
      clientIp,
      userAgent: withoutKeys(raw.headers["user-agent"] ?? "").slice(0, longest.userAgent),
      intent,
    };
  }
}

const nobody = { authStrategy: "none", userId: "", email: "" };
/** A browser's own URLs bring the token of its lease. */
const leaseHolder = { authStrategy: "lease", userId: "", email: "" };

function callerOf(
  raw: IncomingMessage,
  request: FastifyRequest | undefined,
): Pick<NewEntry, "authStrategy" | "userId" | "email"> {
  const principal = request?.principal;
  if (principal)
    return { authStrategy: principal.source, userId: principal.person.id, email: principal.person.email };
  return !request && isInterceptedPath(raw.url ?? "") ? leaseHolder : nobody;
}

/** The Host header without its port. */
const domainOf = ({ headers }: IncomingMessage): string =>
  withoutKeys(headers.host ?? "").replace(/:\d*$/, "");

const templates = new Map<string, string>();
/** `/browser_pools/:id_or_name` becomes `/browser_pools/{id_or_name}`, as the OpenAPI document has it. */
function templateOf(url: string): string {
  const known = templates.get(url);
  if (known !== undefined) return known;
  const made = url.replaceAll(/:(\w+)/g, "{$1}");
  templates.set(url, made);
  return made;
}

/** Empty where the path is not one of a browser's own. */
function frontTemplateOf(path: string): string {
  const [, way] = /^\/browsers\/[^/]+\/(cdp|webdriver|curl)(?:\/|$)/.exec(path) ?? [];
  return way === undefined ? "" : `/browsers/{id}/${way}`;
}

const statusOf = (response: ServerResponse): number =>
  response.headersSent || response.writableEnded ? response.statusCode : hungUp;

/** Calls back when the head of the response is about to be written. */
function onStart(response: ServerResponse, started: (status: number) => void): void {
  const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse;
  response.writeHead = (...args: unknown[]): ServerResponse => {
    started(Number(args[0]));
    return writeHead(...args);
  };
}

/**
 * Calls back with the status of the first thing that is written to the socket, which is a response's head.
 */
function onFirstWrite(socket: Duplex, answered: (status: number) => void): void {
  const { write, end } = socket;
  const look = (chunk: unknown): void => {
    socket.write = write;
    socket.end = end;
    answered(Number(/^HTTP\/1\.\d (\d{3})/.exec(String(chunk).slice(0, headBytes))?.[1] ?? hungUp));
  };
  socket.write = (...args: unknown[]): boolean => {
    look(args[0]);
    return (write as (...args: unknown[]) => boolean).apply(socket, args);
  };
  socket.end = (...args: unknown[]): Duplex => {
    look(args[0]);
    return (end as (...args: unknown[]) => Duplex).apply(socket, args);
  };
}
const headBytes = 16;
