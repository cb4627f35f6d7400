import { request } from "node:http";
import { isIP, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext } from "node:tls";
import { SocksClient } from "socks";
import { errnoOf } from "../base/errno.js";
import type { Clock, Millis } from "../base/clock.js";
import { TimeLimitReached, within } from "../base/deadline.js";
import { awaitHandshake, destroySocket, dial, SilentAddress, setRawSocket } from "./dial.js";
import { judgeProxy, type ProxyHostParts, type TargetHost } from "./rules.js";
import type { Upstream } from "../registry/proxies/proxy.js";
import { authorityOf } from "./target.js";

interface UpstreamOptions extends ProxyHostParts {
  /** The limit for all of it: resolving, connecting, TLS, the proxy's answer. */
  readonly connectMs: Millis;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/**
 * `message` names the upstream by its id and tells no secret. There is no cause: errors of libraries carry
 * what these were given.
 */
export class UpstreamFailure extends Error {
  constructor(
    readonly id: string,
    why: string,
  ) {
    super(`The proxy ${id} ${why}`);
    this.name = "UpstreamFailure";
  }
}

/**
 * A connection to the target through the upstream, which also resolves the name. Throws `UpstreamFailure`.
 */
export const dialThrough = (
  upstream: Upstream,
  target: TargetHost,
  options: UpstreamOptions,
): Promise<Socket> =>
  reach(upstream, options, async (socket) => {
    if (upstream.protocol === "socks5")
      await askSocks(socket, upstream, { target, limitMs: options.connectMs });
    else await askConnect(socket, upstream, target);
  });

/** A connection to the upstream itself, for requests in absolute form. Throws `UpstreamFailure`. */
export const dialUpstream = (upstream: Upstream, options: UpstreamOptions): Promise<Socket> =>
  reach(upstream, options, async () => {});

/** The value of the header Proxy-Authorization. */
export function basicAuthorization({ username, password }: Upstream): string | undefined {
  if (username === undefined && password === undefined) return undefined;
  return `Basic ${Buffer.from(`${username ?? ""}:${password?.reveal() ?? ""}`).toString("base64")}`;
}

type ProxyHandshake = (socket: Socket) => Promise<void>;

async function reach(
  upstream: Upstream,
  options: UpstreamOptions,
  handshake: ProxyHandshake,
): Promise<Socket> {
  const { clock, connectMs } = options;
  const giving = new AbortController();
  const giveUp = (): void => giving.abort();
  options.signal?.addEventListener("abort", giveUp);
  if (options.signal?.aborted) giveUp();
  try {
    return await within(
      clock,
      { what: "the proxy", limitMs: connectMs },
      reachUntil(upstream, { ...options, signal: giving.signal }, handshake),
    );
  } catch (error) {
    giveUp();
    throw failureOf(upstream, error);
  } finally {
    options.signal?.removeEventListener("abort", giveUp);
  }
}

/** Destroys everything that is open when the signal aborts, whereupon the step that waits for it fails. */
async function reachUntil(
  upstream: Upstream,
  options: UpstreamOptions & { readonly signal: AbortSignal },
  handshake: ProxyHandshake,
): Promise<Socket> {
  const { clock, connectMs, signal } = options;
  const judged = await judgeProxy(upstream, options, signal);
  if (judged.kind === "closed") throw failed(upstream, judged.why);
  const { socket: plain } = await dial(judged.addresses, upstream.port, {
    clock,
    until: clock.monotonic() + connectMs,
    signal,
  });
  let socket = plain;
  const end = (): void => destroySocket(socket);
  signal.addEventListener("abort", end);
  try {
    if (upstream.protocol === "https") socket = await secure(plain, upstream);
    await handshake(socket);
    // The socket's end may have come with the answer, and its next owner would wait for one.
    if (socket.destroyed) throw failed(upstream, "broke the connection");
    return socket;
  } catch (error) {
    end();
    throw error;
  } finally {
    signal.removeEventListener("abort", end);
  }
}

const failed = (upstream: Upstream, why: string): UpstreamFailure => new UpstreamFailure(upstream.id, why);

/** Reading certificates takes milliseconds, so once for each upstream. */
const contexts = new WeakMap<Upstream, SecureContext>();

async function secure(plain: Socket, upstream: Upstream): Promise<Socket> {
  const { host, caBundle } = upstream;
  const context =
    contexts.get(upstream) ?? createSecureContext(caBundle === undefined ? {} : { ca: caBundle });
  contexts.set(upstream, context);
  const socket = connectTls({
    socket: plain,
    host,
    secureContext: context,
    ...(isIP(host) ? {} : { servername: host }),
  });
  setRawSocket(socket, plain);
  await awaitHandshake(socket);
  return socket;
}

function askConnect(socket: Socket, upstream: Upstream, target: TargetHost): Promise<void> {
  const path = authorityOf(target);
  const authorization = basicAuthorization(upstream);
  const headers = {
    Host: path,
    ...(authorization !== undefined && { "Proxy-Authorization": authorization }),
  };
  return new Promise((resolve, reject) => {
    const asking = request({ createConnection: () => socket, method: "CONNECT", path, headers });
    asking.once("error", reject);
    asking.once("connect", ({ statusCode = 0 }, _socket, head) => {
      if (statusCode < 200 || statusCode > 299) return reject(failed(upstream, `answered ${statusCode}`));
      if (head.length > 0) socket.unshift(head);
      resolve();
    });
    asking.end();
  });
}

async function askSocks(
  socket: Socket,
  upstream: Upstream,
  { target, limitMs }: { readonly target: TargetHost; readonly limitMs: Millis },
): Promise<void> {
  const { host, port, username, password } = upstream;
  const credentials = username === undefined ? {} : { userId: username, password: password?.reveal() ?? "" };
  await SocksClient.createConnection({
    proxy: { host, port, type: 5, ...credentials },
    command: "connect",
    destination: target,
    existing_socket: socket,
    // The library's own limit is 30 s. It has to come after ours, which tells that there was no answer.
    timeout: limitMs + 1000,
  });
  await regain(socket);
}

/**
 * Takes a socket back from the library, which one turn later emits what came after the proxy's answer, and
 * lets the socket flow. Who listens for `readable` holds it; afterwards it is as a new one: it flows when
 * somebody wants its data.
 */
async function regain(socket: Socket): Promise<void> {
  const early: Buffer[] = [];
  const keep = (chunk: Buffer): void => void early.push(chunk);
  const hold = (): void => {};
  socket.on("readable", hold).on("data", keep);
  await new Promise(setImmediate);
  socket.off("data", keep).off("readable", hold);
  // The stream takes note of that in the next tick.
  await new Promise(process.nextTick);
  if (early.length > 0) socket.unshift(Buffer.concat(early));
}

function failureOf(upstream: Upstream, error: unknown): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  if (error instanceof TimeLimitReached || error instanceof SilentAddress)
    return failed(upstream, "did not answer in time");
  const code = errnoOf(error);
  if (code) return failed(upstream, `could not be reached: ${code}`);
  return failed(
    upstream,
    upstream.protocol === "socks5" ? "refused or did not speak SOCKS5" : "could not be reached",
  );
}
