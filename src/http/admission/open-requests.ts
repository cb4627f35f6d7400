import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type DeferredAdmission, keyOf, type Principal } from "../../access/principal.js";
import type { Clock, Millis } from "../../base/clock.js";
import { type Log, textOf } from "../../base/log.js";
import { FreeList } from "../../base/free-list.js";

interface OpenRequestsParts {
  /** Which of these API keys let nobody in any more. */
  endedAmong(ids: readonly string[]): Promise<readonly string[]>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Well within the 5 s that docs/access.md promises, also where one look takes its whole limit. */
const lookMs: Millis = 1000;

/**
 * What is known of a key is older than this only where something stood still: otherwise a look has come in
 * between.
 */
const freshMs: Millis = 2 * lookMs;

/** A shorter answer has arrived, or is within what the reader's own system takes without being read. */
const leastSentBytes = 64 * 1024;

/** What the system has taken of a connection's last answer, and may keep for a reader who does not read. */
interface SentAnswer {
  readonly principal: Principal;
  /** What the connection had received by then: more is another request, perhaps of somebody else. */
  readonly bytesRead: number;
}

/** Judges a person's session, which nobody has to be asked about. */
const isOver = ({ expiresAt = Infinity }: Principal, clock: Clock): boolean => expiresAt <= clock.now();

/** Where an answer keeps its request. */
const openRequest = Symbol("open request");
declare module "node:http" {
  interface ServerResponse {
    [openRequest]?: OpenRequest;
  }
}

/** A request whose answer is not whole yet, and when its key was last known to be good. */
export class OpenRequest {
  /** Its place among all that are open. */
  place = 0;

  /** Whether it was let in before its body was whole, and was not judged since. */
  isEarly = false;
  /** An instant of the monotonic clock. */
  judgedAt: Millis = 0;
  /** Set where a script judges it: until then nothing of it is done, and whose key has ended is told 401. */
  deferred: Pick<DeferredAdmission, "outcome"> | undefined;

  constructor(
    readonly principal: Principal,
    readonly response: ServerResponse,
    private readonly parts: OpenRequestsParts,
  ) {}

  get isLetIn(): boolean {
    return this.deferred === undefined || this.deferred.outcome() !== undefined;
  }

  /**
   * A look that began then has found its key good. Nobody looks at a body: that is judged when it is whole.
   */
  foundGood(at: Millis): void {
    if (!this.isEarly) this.judgedAt = Math.max(this.judgedAt, at);
  }

  /**
   * Whether its credential has ended since it was let in. To be asked when its body is whole, and before
   * anything is lent. Undefined where it was known to be good a moment ago: always, but where the body was
   * late, or where this process, Redis or the way between them stood still.
   */
  hasEnded(): Promise<boolean> | undefined {
    const id = keyOf(this.principal);
    const { clock } = this.parts;
    if (id === undefined) return isOver(this.principal, clock) ? Promise.resolve(true) : undefined;
    return this.isEarly || clock.monotonic() - this.judgedAt > freshMs ? this.#judge(id) : undefined;
  }

  async #judge(id: string): Promise<boolean> {
    this.isEarly = false;
    const at = this.parts.clock.monotonic();
    const hasEnded = (await this.parts.endedAmong([id])).length > 0;
    if (!hasEnded) this.foundGood(at);
    return hasEnded;
  }
}

/**
 * Requests whose answer is not whole yet: a wait for a browser, a stream, a long download. A credential is
 * judged when a request comes; one that ends afterwards ends what it has opened, by a look every second.
 */
export class OpenRequests {
  readonly #open = new FreeList<OpenRequest>();
  /** Linux takes up to 4 MiB of an answer (tcp(7), tcp_wmem), which is over for Node.js then. */
  readonly #sent = new Map<Socket, SentAnswer>();
  #stop: (() => void) | undefined;
  #isLooking = false;

  constructor(private readonly parts: OpenRequestsParts) {}

  /**
   * Undefined for the root key, which never ends, and for who has hung up while they were judged. `askedAt`
   * is when that began, by the monotonic clock. Where it is `deferred`, the key is judged once the body is
   * there, whenever that is.
   */
  add(
    principal: Principal,
    response: ServerResponse,
    { askedAt, deferred }: { readonly askedAt: Millis; readonly deferred?: OpenRequest["deferred"] },
  ): OpenRequest | undefined {
    if (keyOf(principal) === undefined && principal.expiresAt === undefined) return undefined;
    if (response.destroyed) return undefined;
    this.#stop ??= this.parts.clock.every(lookMs, () => void this.#look());
    const { socket, complete: isWhole } = response.req;
    const opened = new OpenRequest(principal, response, this.parts);
    opened.judgedAt = askedAt;
    opened.deferred = deferred;
    opened.isEarly = !isWhole && !deferred;
    opened.place = this.#open.add(opened);
    response[openRequest] = opened;
    const before = socket.bytesWritten;
    response.on("close", () => {
      const wasOpen = this.#open.remove(opened.place, opened);
      const isLong = socket.bytesWritten - before >= leastSentBytes;
      if (wasOpen && isLong) this.#sent.set(socket, { principal, bytesRead: socket.bytesRead });
    });
    return opened;
  }

  /** Lets a request be answered whatever becomes of its credential. */
  forget(response: ServerResponse): void {
    const opened = response[openRequest];
    if (opened) this.#open.remove(opened.place, opened);
  }

  close(): void {
    this.#stop?.();
  }

  /** Looks at sessions of people first: nobody has to be asked whether one is over. */
  async #look(): Promise<void> {
    this.#cut((principal) => isOver(principal, this.parts.clock));
    const ids = this.#openKeys();
    if (this.#isLooking || ids.length === 0) return;
    this.#isLooking = true;
    const at = this.parts.clock.monotonic();
    try {
      const ended = new Set(await this.parts.endedAmong(ids));
      this.#cut((principal) => ended.has(keyOf(principal) ?? ""));
      this.#renew(new Set(ids.filter((id) => !ended.has(id))), at);
    } catch (error) {
      this.parts.log.warn({ error: textOf(error) }, "open requests were not looked at");
    } finally {
      this.#isLooking = false;
    }
  }

  #renew(good: ReadonlySet<string>, at: Millis): void {
    for (const one of this.#open.all()) if (good.has(keyOf(one.principal) ?? "")) one.foundGood(at);
  }

  /**
   * Forgets answers that were read: whoever sends another request has read the answer before, or a proxy has.
   */
  #forgetRead(): void {
    for (const [socket, { bytesRead }] of this.#sent)
      if (socket.destroyed || socket.bytesRead !== bytesRead) this.#sent.delete(socket);
  }

  /**
   * The connection is closed, which ends a wait as if its caller had gone; a repeat is refused. A reply whose
   * turn has not come would close it only then. One that has begun is reset: that takes back what the system
   * has not sent yet.
   */
  #cut(hasEnded: (principal: Principal) => boolean): void {
    this.#forgetRead();
    for (const [socket, { principal }] of this.#sent) if (hasEnded(principal)) socket.resetAndDestroy();
    for (const { response, principal, isLetIn } of this.#open.all())
      if (isLetIn && hasEnded(principal)) end(response);
  }

  #openKeys(): readonly string[] {
    const open = [...this.#open.all(), ...this.#sent.values()];
    return [...new Set(open.flatMap(({ principal }) => keyOf(principal) ?? []))];
  }
}

function end({ headersSent, req: { socket } }: ServerResponse): void {
  if (headersSent) socket.resetAndDestroy();
  else socket.destroy();
}
