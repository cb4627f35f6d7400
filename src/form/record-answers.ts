import type { IncomingMessage } from "node:http";
import type { FastifyRequest } from "fastify";
import { type NewEntry, unheardStatus } from "../audit/entry.js";
import type { Clock } from "../base/clock.js";
import { withoutKeys } from "../base/crypto/key-text.js";
import { newRequestId } from "../base/ids.js";
import type { FormEnd, OpenForm } from "../vault/collection-form.js";
import type { FormApp, FormDeps } from "./app.js";

interface RecordParts extends Pick<FormDeps, "audit"> {
  readonly clock: Clock;
  readonly addressOf: (raw: IncomingMessage) => string;
}

/** Texts that callers choose are cut: entries stand in Redis. */
const longest = { userAgent: 512, domain: 255 } as const;

/**
 * Leaves one entry in the audit log for each question of the page. It says nothing of the token, nor of what
 * was entered.
 */
export class FormAudit {
  readonly #receivedAt = new WeakMap<FastifyRequest, number>();
  readonly #paths = new WeakMap<FastifyRequest, string>();
  readonly #changing = new WeakSet<FastifyRequest>();
  readonly #intents = new WeakMap<FastifyRequest, string>();

  constructor(private readonly parts: RecordParts) {}

  watch(app: FormApp): void {
    app.addHook("onRequest", (request, _reply, next) => {
      this.#receivedAt.set(request, this.parts.clock.monotonic());
      next();
    });
    app.addHook("onResponse", (request, { statusCode }, next) => {
      const { url = "" } = request.routeOptions;
      if (request.method === "POST" && url !== "" && !this.#changing.has(request))
        this.parts.audit.record(this.#entryOf(request, statusCode));
      next();
    });
  }

  /** Which item a link is for is known once it was looked up. */
  note(request: FastifyRequest, opened: OpenForm | FormEnd): void {
    if (opened.kind !== "form") return;
    const { vault, key } = opened.item;
    this.#paths.set(request, `/vaults/${vault}/items/${encodeURIComponent(key)}`);
  }

  /**
   * Puts on record that values are about to be written; to be told of what came of it before that is
   * answered. Throws `audit_unavailable` where the log takes nothing more (docs/audit.md).
   */
  async begin(request: FastifyRequest): Promise<(status: number) => Promise<void>> {
    const { audit } = this.parts;
    const intent = newRequestId();
    this.#intents.set(request, intent);
    await audit.begin(intent, this.#entryOf(request, unheardStatus));
    this.#changing.add(request);
    return (status) => audit.recordNow(this.#entryOf(request, status));
  }

  #entryOf(request: FastifyRequest, status: number): NewEntry {
    const { clock, addressOf } = this.parts;
    const { headers, raw } = request;
    const { url: route = "" } = request.routeOptions;
    const now = clock.monotonic();
    const receivedAt = this.#receivedAt.get(request) ?? now;
    return {
      receivedAt,
      durationMs: now - receivedAt,
      authStrategy: "form",
      userId: "",
      email: "",
      status,
      method: "POST",
      path: this.#paths.get(request) ?? route,
      route,
      domain: (headers.host ?? "").replace(/:\d*$/, "").slice(0, longest.domain),
      clientIp: addressOf(raw),
      userAgent: withoutKeys(headers["user-agent"] ?? "").slice(0, longest.userAgent),
      intent: this.#intents.get(request),
    };
  }
}
