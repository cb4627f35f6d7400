import type { IncomingMessage, ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import type { Clock, Millis } from "../../base/clock.js";
import { TimeLimitReached, within } from "../../base/deadline.js";
import { RemudaError } from "../../base/errors.js";
import { beginUpload } from "./uploading.js";

export interface UploadExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** How long a body may take. */
export interface BodyTimeLimits {
  /** The longest time without a byte while we are ready for more. */
  readonly stallMs: Millis;
  /** The limit for the whole body. */
  readonly limitMs: Millis;
}

interface PumpContext {
  readonly clock: Clock;
  /** Why the body will never be whole. */
  readonly onFault: (error: Error) => void;
}

/**
 * A connection that is closed over bytes not yet read loses the reply that is on its way: what was under way
 * is read for so long.
 */
const lingerMs: Millis = 2000;

/**
 * Carries a request's body into a parser, and reads it to its end whatever becomes of the parser: a client
 * that sends all before it looks for a reply would otherwise find its connection reset instead. What does not
 * come in time closes the connection.
 */
export class BodyPump {
  readonly #endsAt: Millis;
  readonly #chunks: AsyncIterator<unknown>;
  #isDiscarding = false;
  #goOn = (): void => {};

  constructor(
    private readonly exchange: UploadExchange,
    private readonly patience: BodyTimeLimits,
    private readonly context: PumpContext,
  ) {
    this.#endsAt = context.clock.monotonic() + patience.limitMs;
    // The iterator would close the connection, and with it the way back of the reply.
    this.#chunks = exchange.request.iterator({ destroyOnReturn: false });
  }

  /** What still comes is of no use to anybody. */
  discard(): void {
    this.#isDiscarding = true;
    this.#goOn();
  }

  /** Resolves when nothing comes any more. */
  async run(into: Writable): Promise<void> {
    const { clock, onFault } = this.context;
    const endUpload = beginUpload(this.exchange.request.socket);
    // The parser may be held up by whoever reads the parts, so that no read is under way that could be late.
    const cancel = clock.after(this.patience.limitMs, () => onFault(this.#late()));
    try {
      await this.#carry(into);
    } catch (error) {
      onFault(this.#faultOf(error));
      await this.#linger();
    } finally {
      cancel();
      endUpload();
    }
  }

  async #carry(into: Writable): Promise<void> {
    for (let next = await this.#read(); !next.done; next = await this.#read())
      await this.#write(into, next.value);
    if (!this.#isDiscarding) into.end();
  }

  async #read(): Promise<IteratorResult<unknown>> {
    const { stallMs } = this.patience;
    const leftMs = this.#leftUntil(this.#endsAt);
    if (leftMs <= 0) throw this.#late();
    try {
      return await this.#readWithin(Math.min(stallMs, leftMs));
    } catch (error) {
      if (!(error instanceof TimeLimitReached)) throw error;
      // Tells which limit it was by the shorter one, since a timer may fire a moment before the clock says
      // so.
      throw stallMs < leftMs
        ? fault(`Nothing of the body arrived for ${stallMs / 1000} seconds`)
        : this.#late();
    }
  }

  #readWithin(limitMs: Millis): Promise<IteratorResult<unknown>> {
    return within(this.context.clock, { what: "the next bytes", limitMs }, this.#chunks.next());
  }

  readonly #leftUntil = (instant: Millis): Millis => instant - this.context.clock.monotonic();

  async #write(into: Writable, chunk: unknown): Promise<void> {
    if (this.#isDiscarding) return;
    await new Promise<void>((resolve) => {
      this.#goOn = resolve;
      into.write(chunk, () => resolve());
    });
  }

  #faultOf(error: unknown): Error {
    return error instanceof RemudaError ? error : fault("The connection closed before the body had arrived");
  }

  readonly #late = (): Error =>
    fault(`The body did not arrive within ${this.patience.limitMs / 1000} seconds`);

  async #linger(): Promise<void> {
    const endsAt = this.context.clock.monotonic() + lingerMs;
    try {
      for (let next = await this.#readWithin(lingerMs); !next.done;)
        next = await this.#readWithin(this.#leftUntil(endsAt));
    } catch {
      this.#closeConnection();
    }
  }

  /** Closes the connection after the reply, where there is one to come. */
  #closeConnection(): void {
    const { request, response } = this.exchange;
    response.shouldKeepAlive = false;
    if (response.writableEnded) request.destroy();
  }
}

const fault = (message: string): RemudaError => new RemudaError("bad_request", { message });
