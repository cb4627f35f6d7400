import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import Fastify, { type FastifyReply } from "fastify";
import type { AuditRecorder } from "../audit/writer.js";
import type { Clock } from "../base/clock.js";
import { RemudaError } from "../base/errors.js";
import { type Log, textOf } from "../base/log.js";
import { hasTwoHosts, makeHostCheck } from "../base/net/host-check.js";
import type { CollectionForms } from "../vault/collection-form.js";
import {
  type FormAnswer,
  answerMalformed,
  invalidAnswer,
  misdirectedAnswer,
  tooLargeAnswer,
  unavailableAnswer,
  unknownAnswer,
} from "./answers.js";
import { formHeaders } from "./headers.js";
import type { FormAudit } from "./record-answers.js";

export interface FormOptions {
  readonly host: string;
  /** 0 takes any free one. */
  readonly port: number;
  /** Where browsers reach it, where that is not what it listens on. */
  readonly publicUrl: string | null;
  /** Addresses and ranges of proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
  /** Openings and submissions of one address in a minute. */
  readonly attemptsPerMinute: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly maxConnections: number;
  /** How long `close` lets replies in flight end. */
  readonly closeLimitMs: number;
}

export interface FormDeps {
  readonly forms: CollectionForms;
  readonly audit: AuditRecorder;
  readonly clock: Clock;
  readonly log: Log;
}

/** What a change of an item may bring by the API, a submission may bring too. */
const mostBodyBytes = 128 * 1024;

/** The page of the form, and what every answer of its server carries; nothing listens yet. */
export function makeFormApp(
  { host, publicUrl, ...options }: FormOptions,
  { log, trail }: Pick<FormDeps, "log"> & { readonly trail: Pick<FormAudit, "watch"> },
) {
  const headers = formHeaders(publicUrl?.startsWith("https:") === true);
  const hosts = makeHostCheck({ host, urls: [publicUrl] });
  const app = Fastify({
    bodyLimit: mostBodyBytes,
    // Node.js holds its limits on slow requests only every 30 s by itself.
    http: { connectionsCheckingInterval: Math.min(options.requestTimeoutMs, 5000) },
    clientErrorHandler: (error, socket) => answerMalformed(error, socket, headers),
    requestTimeout: options.requestTimeoutMs,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    return503OnClosing: false,
    // A body is taken as it is or not at all.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
    // The hooks of such a request have not run: its URL could not be routed.
    frameworkErrors: (_error, _request, reply) => sendAnswer(reply.headers(headers), invalidAnswer),
  }).withTypeProvider<TypeBoxTypeProvider>();
  trail.watch(app);
  app.addHook("onRequest", (request, reply, next) => {
    reply.headers(headers);
    if (!hasTwoHosts(request.raw) && hosts.admits(request.headers.host)) next();
    else sendAnswer(reply, misdirectedAnswer);
  });
  app.removeContentTypeParser("text/plain");
  app.setNotFoundHandler((_request, reply) => sendAnswer(reply, unknownAnswer));
  app.setErrorHandler((error, _request, reply) => sendAnswer(reply, answerOf(error, log)));
  for (const { path, type, bytes } of readPageFiles())
    app.get(path, (_request, reply) => reply.type(type).send(bytes));
  return app;
}

export type FormApp = ReturnType<typeof makeFormApp>;

export const sendAnswer = (reply: FastifyReply, { status, retryAfterMs, body }: FormAnswer): FastifyReply =>
  reply
    .code(status)
    .headers(retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1000)) })
    .type("application/json; charset=utf-8")
    .send(JSON.stringify(body));

/**
 * Nothing of an error's text goes out. Where the caller is to blame it is not logged: it may quote the body.
 */
function answerOf(error: unknown, log: Log): FormAnswer {
  if (error instanceof RemudaError) {
    log.warn({ code: error.code }, "collection form not answered");
    return unavailableAnswer;
  }
  const { statusCode } =
    typeof error === "object" && error !== null ? (error as { statusCode?: unknown }) : {};
  if (statusCode === 413) return tooLargeAnswer;
  if (typeof statusCode === "number" && statusCode >= 400 && statusCode < 500) return invalidAnswer;
  log.error({ error: textOf(error) }, "collection form failed");
  return unavailableAnswer;
}

interface PageFile {
  readonly path: string;
  readonly type: string;
  readonly bytes: Buffer;
}

const pageTypes: Readonly<Record<string, string>> = {
  "form.html": "text/html; charset=utf-8",
  "form.css": "text/css; charset=utf-8",
  "form.mjs": "text/javascript; charset=utf-8",
  "fields.mjs": "text/javascript; charset=utf-8",
  "jwe.mjs": "text/javascript; charset=utf-8",
  "icon.svg": "image/svg+xml",
};

/** The files of the page, each by its path; the page itself is the root. */
const readPageFiles = (): readonly PageFile[] =>
  Object.entries(pageTypes).map(([name, type]) => ({
    path: name === "form.html" ? "/" : `/${name}`,
    type,
    bytes: readFileSync(join(import.meta.dirname, "page", name)),
  }));
