import { type IncomingMessage, STATUS_CODES, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type ErrorCode, errors } from "../base/errors.js";
import { findRequestId, type LeaseId, newRequestId, type RequestId } from "../base/ids.js";
import { securityHeaders } from "../base/net/security-headers.js";
import type { LocalBrowser } from "./ports.js";

/** Why a request or an upgrade is not served. */
export interface GatewayRefusal {
  readonly code: ErrorCode;
  /** Replaces the table's message with a more exact one. */
  readonly message?: string;
}

/**
 * 410 with the reason; that a pool was deleted under its holders has a code of its own
 * (docs/api.md#deleting-a-pool).
 */
export const goneBecause = (reason: string): GatewayRefusal =>
  reason === "pool_deleted"
    ? { code: "pool_deleted" }
    : { code: "browser_gone", message: `The browser is gone: ${reason}` };

/** Says why a lease is over, as far as this node has heard. */
export const overBecause = (
  local: Pick<LocalBrowser, "activity"> | undefined,
  lease: LeaseId,
): GatewayRefusal => goneBecause(local?.activity.whyOver(lease) ?? "the lease is over");

export const isGatewayRefusal = (value: object): value is GatewayRefusal => "code" in value;

const json = "application/json; charset=utf-8";

const idHeader = "x-request-id";

export const headersOfJson = (request = newRequestId()): Record<string, string> => ({
  ...securityHeaders,
  "content-type": json,
  [idHeader]: request,
});

/** Gives the request an id, which every answer to it bears: that of the control, where one has sent it. */
export function identify(request: IncomingMessage, response: ServerResponse): RequestId {
  const given = request.headers[idHeader];
  const id = (typeof given === "string" && findRequestId(given)) || newRequestId();
  response.setHeader(idHeader, id);
  return id;
}

export const answerIdOf = (response: ServerResponse): RequestId | undefined =>
  findRequestId(String(response.getHeader(idHeader)));

function headersFor(body: string, status: number, request?: RequestId): Record<string, string> {
  return {
    ...headersOfJson(request),
    "content-length": String(Buffer.byteLength(body)),
    ...(status === 503 ? { "retry-after": "1" } : {}),
  };
}

const bodyOf = ({ code, message }: GatewayRefusal): string =>
  JSON.stringify({ code, message: message ?? errors[code].message });

/** An error as WebDriver has it (WebDriver 2, 6.6). */
interface WebDriverError {
  readonly error: string;
  readonly message: string;
}

const webDriverBody = ({ error, message }: WebDriverError, rest: object = {}): string =>
  JSON.stringify({ ...rest, value: { error, message, stacktrace: "" } });

const ofWebDriver = /^\/browsers\/[^/?]+\/webdriver(?:[/?]|$)/;

/** Clients of WebDriver read `value` alone. */
function bodyFor({ req: { url = "" } }: ServerResponse, refused: GatewayRefusal): string {
  const { code, message = errors[code].message } = refused;
  return ofWebDriver.test(url)
    ? webDriverBody({ error: webDriverErrors[code] ?? "unknown error", message }, { code, message })
    : bodyOf(refused);
}

const webDriverErrors: Partial<Record<ErrorCode, string>> = {
  browser_gone: "invalid session id",
  pool_deleted: "invalid session id",
  unauthorized: "session not created",
  too_many_requests: "session not created",
};

/** Answers an upgrade as HTTP, flat JSON, and ends the socket. */
export function refuseUpgrade(socket: Duplex, refused: GatewayRefusal): void {
  if (socket.destroyed || socket.writableEnded) return;
  const { status } = errors[refused.code];
  const body = bodyOf(refused);
  const headers = { ...headersFor(body, status), connection: "close" };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.once("finish", () => socket.destroy());
  socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Error"}`, ...lines, "", body].join("\r\n"));
}

export function refuseRequest(response: ServerResponse, refused: GatewayRefusal): void {
  if (response.headersSent) return void response.destroy();
  const { status } = errors[refused.code];
  const body = bodyFor(response, refused);
  response.writeHead(status, headersFor(body, status, answerIdOf(response))).end(body);
}

export function answerJson(response: ServerResponse, value: unknown): void {
  if (response.headersSent) return;
  const body = JSON.stringify(value, undefined, 2);
  response.writeHead(200, headersFor(body, 200)).end(body);
}

export function answerWebDriverError(response: ServerResponse, status: number, error: WebDriverError): void {
  if (response.headersSent) return;
  const body = webDriverBody(error);
  response.writeHead(status, headersFor(body, status)).end(body);
}
