import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { errors, type Refusal, refusal } from "../base/errors.js";
import { newRequestId } from "../base/ids.js";
import { repliesOn } from "../base/net/open-replies.js";
import { securityHeaders } from "../base/net/security-headers.js";
import { errorBody, errorHeaders } from "./errors.js";
import { requestIdOf } from "./request-id.js";
import { isUploading } from "./uploads/uploading.js";

/**
 * Answers on a socket that has no response object (a malformed request, an upgrade) and closes it. Where
 * other replies are under way there the answer would be taken for one of them, or for a part of it: then it
 * is only closed.
 */
export function refuseOnSocket(socket: Duplex, refused: Refusal, request?: IncomingMessage): void {
  if (!socket.writable || isAmidReplies(socket, request)) {
    socket.destroy();
    return;
  }
  const { status } = errors[refused.code];
  const body = JSON.stringify(errorBody(refused));
  const headers = {
    ...securityHeaders,
    ...errorHeaders(refused),
    "x-request-id": request ? requestIdOf(request) : newRequestId(),
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
  };
  const lines = Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("");
  // The peer may still be sending; what arrives after the end is of no use and must not keep the socket.
  socket.once("finish", () => socket.destroy());
  socket.on("error", () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Capacity Exhausted"}\r\n${lines}\r\n${body}`);
}

/** Whether the socket owes any other reply than this request's, or has begun with that. */
const isAmidReplies = (socket: Duplex, request: IncomingMessage | undefined): boolean =>
  repliesOn(socket).some(({ req, headersSent }) => req !== request || headersSent);

/**
 * What the parser could not read, or did not get in time; an upload has limits of its own, which whoever
 * reads it keeps. `record` is told what a request was answered whose body broke off.
 */
export function refuseMalformed(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  record: (request: IncomingMessage, refused: Refusal) => void,
): void {
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT" && isUploading(socket)) return;
  const request = repliesOn(socket).find(({ req }) => !req.complete)?.req;
  if (error.code === "ECONNRESET" || !socket.writable || isAmidReplies(socket, request)) {
    socket.destroy();
    return;
  }
  const message = clientErrors[error.code ?? ""] ?? "The request is not well-formed HTTP";
  const refused = refusal("bad_request", { message });
  if (request) record(request, refused);
  refuseOnSocket(socket, refused, request);
}

const clientErrors: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "The request's headers are larger than is accepted",
  ERR_HTTP_REQUEST_TIMEOUT: "The request did not arrive in time",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "The request's chunk extensions are larger than is accepted",
};
