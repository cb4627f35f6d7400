import type { Clock, Millis } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import { type Log, textOf } from "../../base/log.js";
import { type RedisClient, keepAlive } from "./connect.js";

export interface SubscriptionParts<Message> {
  /** A client of its own, not connected yet. */
  connect(): RedisClient;
  readonly channel: string;
  /** Says a text on a channel by the way that messages come; resolves when Redis has taken it. */
  publish(channel: string, text: string): Promise<unknown>;
  /** Throws where it is none. */
  parse(text: string): Message;
  onMessage(message: Message): void;
  /** It listens again, and may have missed something. */
  onAgain?(): void;
  readonly clock: Clock;
  readonly log: Log;
  /** One that does not receive its own word for so long is made anew. */
  readonly limitMs: Millis;
}

const echo = JSON.stringify({ kind: "echo" });
const looksPerLimit = 2;
const openLimits = 5;

/**
 * Hears the messages of one channel. Whether it does is found out from end to end: where nothing came for a
 * while it speaks to itself, on the connection that others speak on, and one that stays deaf to that is made
 * anew, whatever it is that has failed.
 */
export class Subscription<Message> {
  readonly #stops: (() => void)[] = [];
  #client: RedisClient | undefined;
  #stopWatch: () => void = () => {};
  #heardAt: Millis;
  #askedAt: Millis | undefined;
  #lookedAt: Millis;
  #isClosed = false;
  #subscriptions = 0;
  #opened: () => void = () => {};

  private constructor(private readonly parts: SubscriptionParts<Message>) {
    const { clock, limitMs } = parts;
    this.#heardAt = this.#lookedAt = clock.monotonic();
    this.#stops.push(clock.every(limitMs / looksPerLimit, () => this.#look()));
  }

  /** Resolves when it listens; throws where it does not come to that. */
  static async open<Message>(parts: SubscriptionParts<Message>): Promise<Subscription<Message>> {
    const subscription = new Subscription(parts);
    const opened = new Promise<void>((resolve) => (subscription.#opened = resolve));
    subscription.#connect();
    try {
      await within(
        parts.clock,
        { what: "subscribing to messages", limitMs: openLimits * parts.limitMs },
        opened,
      );
    } catch (error) {
      subscription.close();
      throw error;
    }
    return subscription;
  }

  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
    this.#disconnect();
  }

  #connect(): void {
    const { clock, log, limitMs } = this.parts;
    const client = this.parts.connect();
    this.#client = client;
    this.#stopWatch = keepAlive(client, { clock, log, limitMs });
    client.on("error", (error: Error) => log.warn({ error: error.message }, "redis subscription failed"));
    client.on("message", (_: string, text: string) => {
      if (client === this.#client) this.#receive(text);
    });
    client.on("ready", () => void this.#subscribe(client));
    // The first attempt's failure is logged as every other; the client goes on trying.
    client.connect().catch(() => {});
  }

  #disconnect(): void {
    this.#stopWatch();
    this.#client?.disconnect();
    this.#client = undefined;
  }

  async #subscribe(client: RedisClient): Promise<void> {
    try {
      await client.subscribe(this.parts.channel);
    } catch (error) {
      this.parts.log.warn({ error: textOf(error) }, "redis subscription failed");
      if (client === this.#client && client.status === "ready") this.#renew();
      return;
    }
    if (client !== this.#client) return;
    this.#subscriptions += 1;
    this.#opened();
    if (this.#subscriptions > 1) this.parts.onAgain?.();
  }

  #renew(): void {
    if (this.#isClosed) return;
    this.#disconnect();
    this.#heardAt = this.parts.clock.monotonic();
    this.#askedAt = undefined;
    this.#connect();
  }

  #receive(text: string): void {
    this.#heardAt = this.parts.clock.monotonic();
    this.#askedAt = undefined;
    if (text === echo) return;
    try {
      this.parts.onMessage(this.parts.parse(text));
    } catch (error) {
      this.parts.log.error(
        { error: textOf(error), channel: this.parts.channel },
        "message could not be handled",
      );
    }
  }

  #look(): void {
    const { clock, log, limitMs } = this.parts;
    const now = clock.monotonic();
    const wasStill = now - this.#lookedAt > 2 * (limitMs / looksPerLimit);
    this.#lookedAt = now;
    // A process that stood still has not listened: what has come meanwhile is read after this.
    if (wasStill) this.#askedAt = undefined;
    if (this.#askedAt === undefined) {
      if (now - this.#heardAt >= limitMs / looksPerLimit) this.#ask(now);
    } else if (now - this.#askedAt >= limitMs) {
      log.warn({ limitMs }, "redis subscription was deaf, made anew");
      this.#renew();
    }
  }

  #ask(now: Millis): void {
    this.#askedAt = now;
    // Where nothing can be published now, it is not known whether messages arrive.
    this.parts.publish(this.parts.channel, echo).catch(() => (this.#askedAt = undefined));
  }
}
