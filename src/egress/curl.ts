import { readWhole } from "../base/read-whole.js";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { isIP, type Socket } from "node:net";
import { pipeline, Readable } from "node:stream";
import { connect as connectTls } from "node:tls";
import { errnoOf } from "../base/errno.js";
import type { Clock } from "../base/clock.js";
import { abortWith, TimeLimitReached, within } from "../base/deadline.js";
import type { CurlAnswer, CurlRequest, EgressSettings } from "./parts.js";
import type { DeniedBy, TargetHost } from "./rules.js";
import { hostHeaderOf, parseAuthority } from "./target.js";
import type { OpenConnection } from "./connections.js";
import { awaitHandshake } from "./dial.js";
import { awaitPace, type Pace, pipeBytes } from "./join-sockets.js";
import { throttle } from "./limits.js";
import type { TunnelParts } from "./tunnel.js";

/** Why `fetch` has no answer of the origin's. */
export class CurlFailure extends Error {
  constructor(
    readonly kind: "malformed" | "denied" | "failed" | "too_large",
    message: string,
    readonly by?: DeniedBy,
  ) {
    super(message);
    this.name = "CurlFailure";
  }
}

interface CurlParts extends TunnelParts {
  readonly settings: Pick<EgressSettings, "headerBytes" | "curlBodyBytes">;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const gaveUp = "The request was given up, or the rules have changed meanwhile";
const defaultBodyBytes = 10 * 2 ** 20;
/** What frames a message or belongs to a connection is written by us. */
const reserved = new Set([
  "host",
  "connection",
  "keep-alive",
  "transfer-encoding",
  "content-length",
  "upgrade",
  "te",
  "trailer",
  "expect",
]);

interface CurlTarget {
  readonly url: URL;
  readonly target: TargetHost;
}

/** One request over HTTP/1.1, http or https; redirects are not followed. Throws `CurlFailure`. */
export async function fetchThrough(asked: CurlRequest, parts: CurlParts): Promise<CurlAnswer> {
  const { clock, signal } = parts;
  const startedAt = clock.monotonic();
  const target = parse(asked.url);
  const over = new AbortController();
  const givenUp = new Promise<never>((_, reject) =>
    over.signal.addEventListener("abort", () => reject(new CurlFailure("failed", gaveUp))),
  );
  const unfollow = abortWith(over, [signal]);
  try {
    const asking = askThrough(asked, target, { ...parts, signal: over.signal });
    const limit = { what: "the request", limitMs: asked.timeoutMs };
    const answer = await within(clock, limit, Promise.race([asking, givenUp]));
    return { ...answer, durationMs: clock.monotonic() - startedAt };
  } catch (error) {
    throw error instanceof TimeLimitReached
      ? new CurlFailure("failed", "There was no whole answer in time")
      : error;
  } finally {
    unfollow();
    // Ends what is still under way, and a connection that comes only now.
    over.abort();
  }
}

/** When the signal aborts, the connection is cut; one that comes later is cut then. */
async function askThrough(
  asked: CurlRequest,
  to: CurlTarget,
  parts: CurlParts,
): Promise<Omit<CurlAnswer, "durationMs">> {
  const { connections, connector, pace, signal } = parts;
  const { target } = to;
  if (!signal.aborted) await awaitPace(pace, (giveUp) => signal.addEventListener("abort", giveUp));
  if (signal.aborted) throw new CurlFailure("failed", gaveUp);
  const entry = await connections.enter(target, (route, attempt) => connector.tunnel(target, route, attempt));
  if (entry.kind === "denied") throw new CurlFailure("denied", entry.message, entry.by);
  if (entry.kind === "failed") throw new CurlFailure("failed", entry.message);
  const { connection } = entry;
  signal.addEventListener("abort", () => connection.cut());
  try {
    if (signal.aborted) connection.cut();
    return await ask(asked, to, { ...parts, connection });
  } catch (error) {
    throw failureOf(error, connection);
  } finally {
    connection.cut();
  }
}

function parse(text: string): CurlTarget {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    throw new CurlFailure("malformed", "The URL is not an http or https URL");
  if (url.username !== "" || url.password !== "")
    throw new CurlFailure("malformed", "The URL must not have user information");
  const target = parseAuthority(url.host, url.protocol === "https:" ? 443 : 80);
  if (!target) throw new CurlFailure("malformed", "The URL names no host that can be asked");
  return { url, target };
}

async function ask(
  asked: CurlRequest,
  { url, target }: CurlTarget,
  parts: CurlParts & { readonly connection: OpenConnection },
): Promise<Omit<CurlAnswer, "durationMs">> {
  const { connection, settings } = parts;
  // What is sent through a socket that was destroyed before would be waited for until the time is over.
  if (connection.isCut) throw new Error("it was cut before anything was sent");
  const isSecure = url.protocol === "https:";
  const socket = isSecure
    ? await secure(connection.connection.socket, target.host)
    : connection.connection.socket;
  const headers = Object.entries(asked.headers).filter(
    ([name]) => !reserved.has(name.toLowerCase()) && !/^proxy-/i.test(name),
  );
  const asking = request({
    createConnection: () => socket,
    method: asked.method,
    path: url.pathname + url.search,
    maxHeaderSize: settings.headerBytes,
    headers: {
      ...Object.fromEntries(headers),
      Host: hostHeaderOf(target, isSecure ? 443 : 80),
      Connection: "close",
      // Node.js would not say where the body of a GET or DELETE ends (Node.js 20.20, `http.request`).
      ...(asked.body !== undefined && { "Content-Length": Buffer.byteLength(asked.body) }),
    },
  });
  connection.onCut(() => asking.destroy());
  // A tunnel through SOCKS5 comes paused; by then somebody listens.
  asking.once("socket", () => socket.resume());
  // Whoever waits for the answer or its body reports an error; being cut after both is no failure.
  asking.on("error", () => {});
  send(asking, asked.body, parts.pace);
  const answer = await answerTo(asking);
  return {
    status: answer.statusCode ?? 0,
    headers: headersOf(answer),
    body: await bodyOf(paced(answer, parts.pace), settings.curlBodyBytes ?? defaultBodyBytes, (bytes) =>
      asked.kept?.(bytes),
    ),
  };
}

const answerTo = (asking: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    asking.once("response", resolve).once("error", reject);
    const changed = new CurlFailure("failed", "The connection was changed to another protocol");
    asking.once("upgrade", () => reject(changed));
  });

async function secure(plain: Socket, host: string): Promise<Socket> {
  const socket = connectTls({
    socket: plain,
    host,
    ALPNProtocols: ["http/1.1"],
    ...(isIP(host) ? {} : { servername: host }),
  });
  await awaitHandshake(socket);
  return socket;
}

function headersOf(answer: IncomingMessage): Record<string, string[]> {
  const entries = Object.entries(answer.headersDistinct);
  return Object.fromEntries(entries.map(([name, values = []]) => [name, values]));
}

/** Sends the body, if there is one, at the pace of the browser. */
function send(asking: ClientRequest, body: string | undefined, pace: Pace): void {
  if (body === undefined || !pace.bucket) return void asking.end(body);
  pipeBytes(Readable.from(piecesOf(Buffer.from(body))), asking, pace);
}

const pieceBytes = 16 * 1024;
function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += pieceBytes) yield body.subarray(at, at + pieceBytes);
}

/** The answer at the pace of the browser. Where one of the two streams is destroyed, the other is too. */
function paced(answer: IncomingMessage, { bucket, clock }: Pace): Readable {
  return bucket ? pipeline(answer, throttle(bucket, clock), () => {}) : answer;
}

async function bodyOf(answer: Readable, most: number, kept: (bytes: number) => void): Promise<Buffer> {
  const body = await readWhole(answer, most, kept);
  if (!body) throw new CurlFailure("too_large", `The body has more than ${most} bytes`);
  return body;
}

function failureOf(error: unknown, connection: OpenConnection): CurlFailure {
  if (error instanceof CurlFailure) return error;
  if (connection.isCut) return new CurlFailure("failed", gaveUp);
  const code = errnoOf(error) ?? "broken connection";
  if (/^ERR_(INVALID|UNESCAPED)/.test(code))
    return new CurlFailure("malformed", "The method or a header is not valid HTTP");
  return new CurlFailure("failed", `There was no whole answer: ${code}`);
}
