import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type NewEntry, unheardStatus } from "../audit/entry.js";
import type { AuditRecorder } from "../audit/writer.js";
import type { Clock, Millis } from "../base/clock.js";
import { withoutKeys } from "../base/crypto/key-text.js";
import { RemudaError } from "../base/errors.js";
import { newRequestId } from "../base/ids.js";
import type { FormEnd, OpenForm } from "../vault/collection-form.js";

interface RecordParts {
  readonly audit: AuditRecorder;
  readonly clock: Clock;
  readonly addressOf: (raw: IncomingMessage) => string;
}

/** Texts that callers choose are cut: entries stand in Redis. */
const longest = { userAgent: 512, domain: 255 } as const;

/** What nginx logs for a caller that has hung up. */
const hungUp = 499;

/** What is known of a question until its entry is made. */
class QuestionFacts {
  isRecorded = false;
  /** Whether its answer has ended, or its sender has hung up. */
  hasClosed = false;
  /** Whether values are to be written, which are whether its sender waits for the answer or not. */
  isChange = false;
  /** What is on record of that already, or may be. */
  intent: string | undefined = undefined;
  /** The item's, once it was looked up. */
  path: string | undefined = undefined;

  /** `clientIp`: as it came, since a connection that has ended tells no address. */
  constructor(
    readonly receivedAt: Millis,
    readonly clientIp: string,
  ) {}
}

/**
 * Leaves one entry in the audit log for each question of the page. It says nothing of the token, nor of what
 * was entered.
 */
export class FormAudit {
  readonly #observed = new WeakMap<FastifyRequest, QuestionFacts>();

  constructor(private readonly parts: RecordParts) {}

  /** To be told of each question before anything else is. */
  watch(app: FastifyInstance): void {
    app.addHook("onRequest", (request, { raw }, next) => {
      const { clock, addressOf } = this.parts;
      const observed = new QuestionFacts(clock.monotonic(), addressOf(request.raw));
      this.#observed.set(request, observed);
      // Node.js 20 tells nothing else of an answer that ends after its caller has gone.
      raw.once("close", () => {
        observed.hasClosed = true;
        this.#record(request, raw.headersSent ? raw.statusCode : hungUp);
      });
      next();
    });
  }

  /** Which item a link is for is known once it was looked up. */
  note(request: FastifyRequest, opened: OpenForm | FormEnd): void {
    if (opened.kind !== "form") return;
    const { vault, key } = opened.item;
    this.#get(request).path = `/vaults/${vault}/items/${encodeURIComponent(key)}`;
  }

  /**
   * Puts on record that values are about to be written; to be told of what came of it before that is
   * answered. Throws `audit_unavailable` where the log takes nothing more (docs/audit.md), and `unavailable`
   * where the sender has hung up, of whom nothing more could be recorded.
   */
  async begin(request: FastifyRequest): Promise<(status: number) => Promise<void>> {
    const { audit } = this.parts;
    const observed = this.#get(request);
    if (observed.isRecorded) throw new RemudaError("unavailable");
    observed.isChange = true;
    observed.intent = newRequestId();
    try {
      await audit.begin(observed.intent, this.#entryOf(request, unheardStatus));
    } catch (error) {
      observed.isChange = false;
      // Whoever is still there is told of it, and is recorded then.
      if (observed.hasClosed) this.#record(request, hungUp);
      throw error;
    }
    return (status) => audit.recordNow(this.#entryOf(request, status));
  }

  /** Values are recorded with what came of them, though their sender may have hung up before. */
  #record(request: FastifyRequest, status: number): void {
    const observed = this.#get(request);
    const { url = "" } = request.routeOptions;
    if (request.method !== "POST" || url === "" || observed.isRecorded || observed.isChange) return;
    observed.isRecorded = true;
    this.parts.audit.record(this.#entryOf(request, status));
  }

  #get(request: FastifyRequest): QuestionFacts {
    const observed = this.#observed.get(request);
    if (!observed) throw new Error("a question was asked that was not observed");
    return observed;
  }

  #entryOf(request: FastifyRequest, status: number): NewEntry {
    const { headers } = request;
    const { url: route = "" } = request.routeOptions;
    const now = this.parts.clock.monotonic();
    const { receivedAt, clientIp, path, intent } = this.#get(request);
    return {
      receivedAt,
      durationMs: now - receivedAt,
      authStrategy: "form",
      userId: "",
      email: "",
      status,
      method: "POST",
      path: path ?? route,
      route,
      domain: withoutKeys(headers.host ?? "")
        .replace(/:\d*$/, "")
        .slice(0, longest.domain),
      clientIp,
      userAgent: withoutKeys(headers["user-agent"] ?? "").slice(0, longest.userAgent),
      intent,
    };
  }
}
