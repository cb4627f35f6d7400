import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Clock, Millis } from "../base/clock.js";
import { within } from "../base/deadline.js";
import { parseHost } from "../base/net/hosts.js";
import type { ProxyFinding, Upstream } from "../registry/proxies/proxy.js";
import type { ProbeReply } from "../registry/proxies/operations.js";
import { judgeTarget, type ProxyHostParts, type Rules, type TargetHost } from "./rules.js";
import { hostHeaderOf, parseAuthority } from "./target.js";
import { basicAuthorization, dialThrough, dialUpstream } from "./upstream.js";

export interface ProbeParts extends ProxyHostParts {
  readonly clock: Clock;
  /** The URL for a caller who names none. The operator has chosen it, so it may be private. */
  readonly defaultUrl: string;
  /** A whole check takes at most so long. */
  readonly limitMs: Millis;
}

interface ProbeTarget {
  readonly url: URL;
  readonly target: TargetHost;
}
interface ProxyTrial extends ProbeTarget {
  readonly upstream: Upstream;
  readonly limitMs: Millis;
  readonly signal: AbortSignal;
}

/** Opens nothing private: a check must tell nobody what there is in the operator's network. */
const publicOnly: Rules = { allowed: null, privates: [], routes: [] };
/** The longest answer that is read; one that tells an address is short. */
const readBytes = 4096;
const isPlain = ({ protocol }: URL): boolean => protocol === "http:";

/**
 * Sends one GET request through a proxy, as a browser's would go. Available: the server of the URL has
 * answered, whatever it said.
 */
export const makeProbe =
  (parts: ProbeParts) =>
  async (upstream: Upstream, url: string | undefined, signal: AbortSignal): Promise<ProbeReply> => {
    const until = parts.clock.monotonic() + parts.limitMs;
    const asked = parse(url ?? parts.defaultUrl);
    if ("fault" in asked) return { kind: "forbidden", message: asked.fault };
    if (url !== undefined && !(await isPublic(asked.target, parts)))
      return { kind: "forbidden", message: "must name a public host" };
    return {
      kind: "probed",
      found: await probe({ ...asked, upstream, signal, limitMs: until - parts.clock.monotonic() }, parts),
    };
  };

function parse(text: string): ProbeTarget | { readonly fault: string } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    return { fault: "must be an http or https URL" };
  if (url.username !== "" || url.password !== "") return { fault: "must not have user information" };
  const target = parseAuthority(url.host, isPlain(url) ? 80 : 443);
  return target ? { url, target } : { fault: "must name a host that can be asked" };
}

/** A name that only the proxy can resolve is the proxy's to answer for. */
async function isPublic(target: TargetHost, { resolve, reserved }: ProbeParts): Promise<boolean> {
  const verdict = await judgeTarget(publicOnly, target, { resolve, reserved });
  return verdict.kind !== "denied" || verdict.by === "unresolved";
}

/** Why a proxy is unavailable is not told: it would say what listens where the proxy is said to be. */
async function probe(trial: ProxyTrial, parts: ProbeParts): Promise<ProxyFinding> {
  const ending = new AbortController();
  const end = (): void => ending.abort();
  trial.signal.addEventListener("abort", end);
  if (trial.signal.aborted) end();
  try {
    return await within(
      parts.clock,
      { what: "the check", limitMs: trial.limitMs },
      ask({ ...trial, signal: ending.signal }, parts),
    );
  } catch {
    return { status: "unavailable" };
  } finally {
    trial.signal.removeEventListener("abort", end);
    end();
  }
}

/** Everything it opens ends with the trial's signal. */
async function ask(
  { url, target, upstream, limitMs, signal }: ProxyTrial,
  { clock, reserved, resolve, proxyHosts }: ProbeParts,
): Promise<ProxyFinding> {
  const options = { connectMs: limitMs, clock, signal, reserved, resolve, proxyHosts };
  const isAbsolute = isPlain(url) && upstream.protocol !== "socks5";
  const socket = isAbsolute
    ? await dialUpstream(upstream, options)
    : await dialThrough(upstream, target, options);
  const end = (): void => void socket.destroy();
  // What fails after somebody has stopped waiting for it must not end the process.
  socket.on("error", () => {});
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  const authorization = isAbsolute ? basicAuthorization(upstream) : undefined;
  const asking = request({
    createConnection: () => (isPlain(url) ? socket : secured(socket, target.host)),
    path: isAbsolute
      ? `http://${hostHeaderOf(target)}${url.pathname}${url.search}`
      : url.pathname + url.search,
    headers: {
      Host: hostHeaderOf(target, isPlain(url) ? 80 : 443),
      Connection: "close",
      Accept: "*/*",
      "User-Agent": "Remuda",
      ...(authorization === undefined ? {} : { "Proxy-Authorization": authorization }),
    },
  });
  // A tunnel through SOCKS5 comes paused; by then somebody listens.
  asking.once("socket", () => socket.resume()).on("error", () => {});
  asking.end();
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  if (isAbsolute && isOfProxy(answer)) return { status: "unavailable" };
  // The server has answered once its head is here, whether a body follows or not.
  const start = within(clock, { what: "the body", limitMs: limitMs / 4 }, startOf(answer));
  const address = findAddress(await start.catch(() => ""));
  return { status: "available", ...(address === undefined ? {} : { ipAddress: address }) };
}

function secured(socket: Socket, host: string): Socket {
  return connectTls({
    socket,
    host,
    ALPNProtocols: ["http/1.1"],
    ...(isIP(host) ? {} : { servername: host }),
  }).on("error", () => {});
}

/**
 * A request in absolute form is answered by the proxy itself where it wants credentials (407) or reaches
 * nobody: 502 to 504, or a status of its own above.
 */
const isOfProxy = ({ statusCode = 0 }: IncomingMessage): boolean => statusCode === 407 || statusCode >= 502;

async function startOf(answer: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes >= readBytes) break;
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** Such servers name the address they were asked from, as `{"ip": "203.0.113.7"}` or as plain text. */
function findAddress(body: string): string | undefined {
  const named = findNamed(body) ?? body;
  const read = named.length <= 64 ? parseHost(named.trim()) : undefined;
  return read?.kind === "address" ? read.host : undefined;
}

function findNamed(body: string): string | undefined {
  try {
    const answer = JSON.parse(body) as unknown;
    const ip: unknown =
      typeof answer === "object" && answer !== null && "ip" in answer ? answer.ip : undefined;
    return typeof ip === "string" ? ip : undefined;
  } catch {
    return undefined;
  }
}
