import { Agent, type ClientRequest, type ClientRequestArgs, request } from "node:http";
import type { Socket } from "node:net";
import { idleOriginMs, idleOrigins } from "./limits.js";

interface OriginRequest {
  readonly method: string;
  readonly path: string;
  /** A flat list: name, value, name, value. */
  readonly headers: readonly string[];
  readonly headerBytes: number;
}

interface OriginRequestArgs extends ClientRequestArgs {
  readonly key: string;
  readonly socket?: Socket;
}

/**
 * Connections to origins, kept for a browser's next request. `key` names where one leads: whoever asks has
 * judged that for his request.
 */
export class Origins extends Agent {
  /** Idle ones that somebody is about to use. */
  readonly #given = new WeakSet<Socket>();

  constructor() {
    super({ keepAlive: true, maxFreeSockets: idleOrigins, timeout: idleOriginMs, scheduling: "lifo" });
  }

  override getName(options?: ClientRequestArgs): string {
    return (options as OriginRequestArgs | undefined)?.key ?? "";
  }

  override createConnection(options: ClientRequestArgs): Socket | undefined {
    return (options as OriginRequestArgs).socket;
  }

  /** Finds an idle connection for the `ask` that has to follow: nobody else is given it meanwhile. */
  findIdle(key: string): Socket | undefined {
    const found = this.freeSockets[key]?.findLast(
      (socket) => !this.#given.has(socket) && !socket.destroyed && socket.writable,
    );
    if (found) this.#given.add(found);
    return found;
  }

  /** Sends a request through the socket, which is one that `findIdle` gave, or a new one. */
  ask(key: string, socket: Socket, { headers, headerBytes, ...rest }: OriginRequest): ClientRequest {
    const options = {
      ...rest,
      key,
      socket,
      agent: this,
      headers,
      maxHeaderSize: headerBytes,
      setHost: false,
    };
    // The agent would take whatever is free under the key, and leave a new connection open and unused: it
    // sees this one alone.
    const free = this.freeSockets as Record<string, Socket[] | undefined>;
    const all = free[key] ?? [];
    const others = all.filter((other) => other !== socket);
    this.#given.delete(socket);
    if (others.length < all.length) free[key] = [socket];
    else delete free[key];
    try {
      // The types know only an object of headers; Node.js takes the list, which keeps order and case.
      return request(options as unknown as ClientRequestArgs);
    } finally {
      if (others.length > 0) free[key] = others;
    }
  }

  /** Ends the connections that nobody uses; one that is about to be used belongs to whoever was given it. */
  purge(): void {
    for (const socket of Object.values(this.freeSockets).flatMap((sockets) => sockets ?? [])) {
      if (!this.#given.has(socket)) socket.destroy();
    }
  }
}
