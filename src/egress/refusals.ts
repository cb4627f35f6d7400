import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { destroySocket } from "./dial.js";
import type { EntryResult } from "./connections.js";

/** What a browser is told instead of what it asked for. */
interface EgressRefusal {
  readonly status: number;
  readonly outcome: "denied" | "failed" | "limited" | "malformed";
  readonly body: { readonly code: string; readonly message: string; readonly rule?: string };
}

export const malformed = (message: string): EgressRefusal => ({
  status: 400,
  outcome: "malformed",
  body: { code: "bad_request", message },
});

export function egressRefusalOf(entry: Exclude<EntryResult, { readonly kind: "open" }>): EgressRefusal {
  const { message } = entry;
  if (entry.kind === "failed")
    return { status: 502, outcome: "failed", body: { code: "egress_failed", message } };
  const body = { code: "egress_denied", message, rule: entry.by };
  return entry.by === "limit"
    ? { status: 503, outcome: "limited", body }
    : { status: 403, outcome: "denied", body };
}

function written({ outcome, body }: EgressRefusal): { headers: Record<string, string>; text: string } {
  const text = JSON.stringify(body);
  const headers = {
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": String(Buffer.byteLength(text)),
    "Cache-Control": "no-store",
    "X-Remuda-Egress": outcome,
  };
  return { headers, text };
}

/** Ends an answer that is not whole so that nobody takes it for whole. */
export function abortResponse(response: ServerResponse): void {
  if (response.socket) destroySocket(response.socket);
  response.destroy();
}

/** Answers a plain request; what was answered in part is broken off. */
export function refuseProxied(response: ServerResponse, refusal: EgressRefusal): void {
  if (response.headersSent) return abortResponse(response);
  const { headers, text } = written(refusal);
  // A status text that was refused before would be tried again.
  response.writeHead(refusal.status, STATUS_CODES[refusal.status], headers).end(text);
}

/** Answers a CONNECT or an upgrade and ends its socket. */
export function refuseTunnel(socket: Duplex, refusal: EgressRefusal): void {
  if (socket.destroyed || socket.writableEnded) return;
  const { headers, text } = written(refusal);
  const lines = Object.entries({ ...headers, Connection: "close" }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  socket.once("finish", () => socket.destroy());
  socket.end([`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`, ...lines, "", text].join("\r\n"));
}
