import type { IncomingMessage } from "node:http";
import { Check } from "typebox/schema";
import { CurlFailure } from "../egress/curl.js";
import { CurlBody, type CurlReply } from "../spec/curl.js";
import type { GatewayRefusal } from "./refusals.js";
import type { LocalBrowser } from "./ports.js";

/** A body of the largest text, every character of it escaped, and its headers. */
const bodyBytes = 8 * 2 ** 20;
const defaultTimeoutMs = 30_000;
/** They ask for a tunnel, or for what came to be shown to whoever asked. */
const refusedMethods = new Set(["CONNECT", "TRACE"]);

const badRequest = (message: string): GatewayRefusal => ({ code: "bad_request", message });

interface CurlContext extends Pick<LocalBrowser, "curl"> {
  /** Aborted when nobody waits for the answer. */
  readonly gone: AbortSignal;
  /** Told how much is held for it by now. */
  kept(bytes: number): void;
}

/** Reads the request and sends it through the browser's way out. Ends when `gone` aborts. */
export async function runCurl(
  request: IncomingMessage,
  { curl, gone, kept }: CurlContext,
): Promise<CurlReply | GatewayRefusal> {
  if (request.method !== "POST") return { code: "method_not_allowed", message: "This path takes POST" };
  const text = await read(request, kept);
  const asked = parse(text);
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
      body: answer.body.toString(encoding),
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
    // More of its requests are open than may be: later there are fewer.
    case "denied":
      return { code: by === "limit" ? "unavailable" : "egress_denied", message: `${message} (${by})` };
    case "failed":
      return { code: "destination_failed", message };
    case "too_large":
      return { code: "destination_failed", message };
  }
}

/** Undefined where there is more than any body may have, or it breaks off. */
async function read(request: IncomingMessage, kept: (bytes: number) => void): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > bodyBytes) return undefined;
    pieces.push(piece);
    kept(bytes);
  }
  return Buffer.concat(pieces).toString();
}

function parse(text: string | undefined): CurlBody | undefined {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return Check(CurlBody, value) ? value : undefined;
  } catch {
    return undefined;
  }
}
