import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { keyOf, type Principal } from "../access/principal.js";
import type { Clock, Millis } from "../base/clock.js";
import { type Log, textOf } from "../base/log.js";

interface OpenRequestsParts {
  /** Which of these API keys let nobody in any more. */
  endedAmong(ids: readonly string[]): Promise<readonly string[]>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Well within the 5 s that docs/access.md promises, also where one look takes its whole limit. */
const lookMs: Millis = 1000;

/** A shorter answer has arrived, or is within what the reader's own system takes without being read. */
const leastSentBytes = 64 * 1024;

/** What the system has taken of a connection's last answer, and may keep for a reader who does not read. */
interface Sent {
  readonly principal: Principal;
  /** What the connection had received by then: more is another request, perhaps of somebody else. */
  readonly bytesRead: number;
}

/**
 * Requests whose answer is not whole yet: a wait for a browser, a stream, a long download. A credential is
 * judged when a request comes; one that ends afterwards ends what it has opened, by a look every second.
 */
export class OpenRequests {
  readonly #open = new Map<ServerResponse, Principal>();
  /** Linux takes up to 4 MiB of an answer (tcp(7), tcp_wmem), which is over for Node.js then. */
  readonly #sent = new Map<Socket, Sent>();
  /** Let in before their bodies were whole. */
  readonly #early = new WeakSet<ServerResponse>();
  #stop: (() => void) | undefined;
  #isLooking = false;

  constructor(private readonly parts: OpenRequestsParts) {}

  /** The root key never ends. Who has hung up while they were judged has nothing open. */
  add(principal: Principal, response: ServerResponse): void {
    if (keyOf(principal) === undefined && principal.expiresAt === undefined) return;
    if (response.destroyed) return;
    this.#stop ??= this.parts.clock.every(lookMs, () => void this.#look());
    this.#open.set(response, principal);
    const { socket, complete: isWhole } = response.req;
    if (!isWhole) this.#early.add(response);
    const before = socket.bytesWritten;
    response.once("close", () => {
      const wasOpen = this.#open.delete(response);
      const { bytesRead, bytesWritten } = socket;
      const isLong = bytesWritten - before >= leastSentBytes;
      if (wasOpen && isLong) this.#sent.set(socket, { principal, bytesRead });
    });
  }

  /** Lets a request be answered whatever becomes of its credential. */
  leave(response: ServerResponse): void {
    this.#open.delete(response);
  }

  /**
   * Whether the credential has ended while the body was still to come; undefined where that had come first.
   * Whoever keeps requests ready but for their last byte could else make them with a key that is deleted.
   */
  endedBeforeBody(response: ServerResponse): Promise<boolean> | undefined {
    const principal = this.#early.delete(response) ? this.#open.get(response) : undefined;
    return principal && this.#hasEnded(principal);
  }

  close(): void {
    this.#stop?.();
  }

  /** Sessions first: to know that one is over nobody has to be asked, who may not answer. */
  async #look(): Promise<void> {
    this.#cut((principal) => this.#isOver(principal));
    const ids = this.#openKeys();
    if (this.#isLooking || ids.length === 0) return;
    this.#isLooking = true;
    try {
      const ended = new Set(await this.parts.endedAmong(ids));
      this.#cut((principal) => ended.has(keyOf(principal) ?? ""));
    } catch (error) {
      this.parts.log.warn({ error: textOf(error) }, "open requests were not looked at");
    } finally {
      this.#isLooking = false;
    }
  }

  /** Whoever asks for something else has read what came before, or has left it to a proxy that did. */
  #forgetRead(): void {
    for (const [socket, { bytesRead }] of this.#sent)
      if (socket.destroyed || socket.bytesRead !== bytesRead) this.#sent.delete(socket);
  }

  /**
   * The connection is closed, which ends a wait as if its caller had gone; a repeat is refused. A reply whose
   * turn has not come would close it only then. One that has begun is reset: that takes back what the system
   * has not sent yet.
   */
  #cut(isOver: (principal: Principal) => boolean): void {
    this.#forgetRead();
    for (const [socket, { principal }] of this.#sent) if (isOver(principal)) socket.resetAndDestroy();
    for (const [response, principal] of this.#open) if (isOver(principal)) end(response);
  }

  async #hasEnded(principal: Principal): Promise<boolean> {
    const id = keyOf(principal);
    if (id === undefined) return this.#isOver(principal);
    return (await this.parts.endedAmong([id])).length > 0;
  }

  readonly #isOver = ({ expiresAt = Infinity }: Principal): boolean => expiresAt <= this.parts.clock.now();

  #openKeys(): readonly string[] {
    const open = [...this.#open.values(), ...[...this.#sent.values()].map(({ principal }) => principal)];
    return [...new Set(open.flatMap((principal) => keyOf(principal) ?? []))];
  }
}

function end({ headersSent, req: { socket } }: ServerResponse): void {
  if (headersSent) socket.resetAndDestroy();
  else socket.destroy();
}
