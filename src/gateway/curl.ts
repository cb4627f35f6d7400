import { readRequest } from "../base/read-whole.js";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { StringDecoder } from "node:string_decoder";
import { pipeline } from "node:stream/promises";
import { Check } from "typebox/schema";
import type { FairTurn } from "../base/fair-turns.js";
import { CurlFailure } from "../egress/curl.js";
import { CurlBody, type CurlReply } from "../spec/curl.js";
import { headersOfJson, answerIdOf, type GatewayRefusal } from "./refusals.js";
import { measure, type JsonShapeLimits } from "./cdp/json-shape.js";
import type { Clock, Millis } from "../base/clock.js";
import type { LeaseId, RequestId } from "../base/ids.js";
import type { LocalBrowser } from "./ports.js";

/** A body of the largest text, every character of it escaped, and its headers. */
const bodyBytes = 8 * 2 ** 20;
const defaultTimeoutMs = 30_000;
/** Several times what a hundred headers need. Reading 8 MiB of anything more intricate takes seconds. */
const shapeLimits: JsonShapeLimits = { depth: 4, values: 1000 };
/** CONNECT asks for a tunnel, and TRACE for the request itself, with headers that are not the caller's. */
const refusedMethods = new Set(["CONNECT", "TRACE"]);

const badRequest = (message: string): GatewayRefusal => ({ code: "bad_request", message });

interface CurlContext extends Pick<LocalBrowser, "curl"> {
  /** Aborted when nobody waits for the answer. */
  readonly gone: AbortSignal;
  /** Called with how much is held for it by now. */
  kept(bytes: number): void;
  /** The turn that all requests through this browser share. */
  readonly turn: FairTurn;
}

interface ObservedCurl {
  readonly browser: Pick<LocalBrowser, "clientObserver">;
  readonly lease: LeaseId;
  readonly request: RequestId;
  readonly clock: Pick<Clock, "monotonic">;
}

/** Tells whoever listens of the request when `over` aborts, if it has an answer then. */
export function observeCurl(
  response: ServerResponse,
  over: AbortSignal,
  { browser, lease, request, clock }: ObservedCurl,
): void {
  const startedAt = clock.monotonic();
  const tell = (): void => {
    if (!response.headersSent) return;
    const { statusCode: status } = response;
    const durationMs = clock.monotonic() - startedAt;
    browser.clientObserver?.requested({ lease, request, operation: "curlBrowser", status, durationMs });
  };
  over.addEventListener("abort", tell, { once: true });
}

/** What is to be answered; the body is put into text while it is written. */
interface Curled extends Omit<CurlReply, "body"> {
  readonly body: Buffer;
  readonly encoding: "utf8" | "base64";
}

/** Reads the request and sends it through the browser's way out. Ends when `gone` aborts. */
export async function runCurl(
  request: IncomingMessage,
  { curl, gone, kept, turn }: CurlContext,
): Promise<Curled | GatewayRefusal> {
  if (request.method !== "POST") return { code: "method_not_allowed", message: "This path takes POST" };
  const text = await readRequest(request, bodyBytes, kept);
  await turn.come();
  const asked = turn.run(() => parse(text));
  if (!asked) return badRequest("The body is not what POST /browsers/{id}/curl takes");
  const {
    url,
    headers = {},
    body,
    timeout_ms: timeoutMs = defaultTimeoutMs,
    response_encoding: encoding = "utf8",
  } = asked;
  const method = (asked.method ?? "GET").toUpperCase();
  if (refusedMethods.has(method)) return badRequest(`The method ${method} cannot be asked for`);
  try {
    const bodyLength = body?.length ?? 0;
    const answer = await curl(
      {
        url,
        method,
        headers,
        timeoutMs,
        kept: (bytes) => kept(bodyLength + bytes),
        ...(body !== undefined && { body }),
      },
      gone,
    );
    return {
      status: answer.status,
      headers: answer.headers,
      body: answer.body,
      encoding,
      duration_ms: Math.round(answer.durationMs),
    };
  } catch (error) {
    if (error instanceof CurlFailure) return refusedFor(error);
    throw error;
  }
}

function refusedFor({ kind, message, by }: CurlFailure): GatewayRefusal {
  switch (kind) {
    case "malformed":
      return badRequest(message);
    // Too many of the browser's requests are open now; later there are fewer.
    case "denied":
      return { code: by === "limit" ? "unavailable" : "egress_denied", message: `${message} (${by})` };
    case "failed":
      return { code: "destination_failed", message };
    case "too_large":
      return { code: "destination_failed", message };
  }
}

function parse(text: Buffer | undefined): CurlBody | undefined {
  if (text === undefined || typeof measure(text, shapeLimits) === "string") return undefined;
  try {
    const value: unknown = JSON.parse(text.toString());
    return Check(CurlBody, value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const pieceBytes = 64 * 1024;

interface AnswerRules {
  readonly turn: FairTurn;
  readonly clock: Pick<Clock, "every">;
  /** A caller who reads nothing for so long is cut. */
  readonly holdMs: Millis;
}

/**
 * Piece by piece: 10 MiB from a hostile site are 60 MiB of JSON, which would take everybody a quarter of a
 * second.
 */
export async function answerCurl(
  response: ServerResponse,
  curled: Curled,
  { turn, ...rules }: AnswerRules,
): Promise<void> {
  response.writeHead(200, headersOfJson(answerIdOf(response)));
  const stopWatching = watchReader(response, rules);
  // The caller has gone.
  await pipeline(piecesOf(curled, turn), response).catch(() => {});
  stopWatching();
}

const mostIdleLooks = 2;

/**
 * Ends an answer of which nothing is read. Where this process stood still, what was read meanwhile is made up
 * for before the next look.
 */
function watchReader(response: ServerResponse, { clock, holdMs }: Omit<AnswerRules, "turn">): () => void {
  let [before, idleLooks] = [progressOf(null), 0];
  return clock.every(holdMs / mostIdleLooks, () => {
    // While others go before it on its connection there is no socket; they are watched themselves.
    const { socket } = response;
    const now = progressOf(socket);
    const hasMoved = now.written !== before.written || now.unsent !== before.unsent;
    const isIdle = socket !== null && socket.writableLength > 0 && !hasMoved;
    idleLooks = isIdle ? idleLooks + 1 : 0;
    before = now;
    if (idleLooks >= mostIdleLooks) response.destroy();
  });
}

/**
 * `written` counts a write as a whole when it begins; `unsent`, which Node.js 24 shows of the handle alone,
 * falls with each part of it that the kernel takes.
 */
function progressOf(socket: Socket | null): { readonly written: number; readonly unsent: number } {
  const handle = (socket as { readonly _handle?: { readonly writeQueueSize?: number } | null } | null)
    ?._handle;
  return { written: socket?.bytesWritten ?? 0, unsent: handle?.writeQueueSize ?? 0 };
}

async function* piecesOf({ body, encoding, ...rest }: Curled, turn: FairTurn): AsyncGenerator<string> {
  const decoder = new StringDecoder(encoding);
  yield `${JSON.stringify(rest).slice(0, -1)},"body":"`;
  for (let at = 0; at < body.length; at += pieceBytes) {
    await turn.come();
    yield turn.run(() => inText(decoder.write(body.subarray(at, at + pieceBytes))));
  }
  yield `${inText(decoder.end())}"}`;
}

const inText = (text: string): string => JSON.stringify(text).slice(1, -1);
