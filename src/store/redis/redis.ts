import { Redis } from "ioredis";
import { type Clock, type Millis, pause, systemClock } from "../../base/clock.js";
import { type Log, textOf } from "../../base/log.js";
import { isConnectionFault, neverSent, refusalWord, storeFault } from "../../base/store-fault.js";
import { isEnding, keepAlive, limitOf, type RedisClient } from "./connect.js";
import { closeGivenUp } from "./given-up.js";
import { membersOf, type RedisMember } from "./members.js";
import { type JudgedReply, parseJudged, parseReply, type ScriptName, type ScriptReply } from "./replies.js";
import {
  byDigest,
  byText,
  type CallParts,
  type KeyOf,
  type KeyJudgement,
  makeCall,
  makeJudgedCall,
  type Script,
  type ScriptArgs,
  type ScriptCall,
} from "./script-call.js";
import { loadScripts } from "./scripts.js";
import { TurnWrites } from "./turn-writes.js";

/** The connection on which a command was sent, and when. */
type SentMark = { readonly stream: Redis["stream"]; readonly at: Millis };

const openAgainMs = 200;
/** A timer may fire a little early. */
const wholeTime = 0.9;

/**
 * One connection for commands, with our scripts; trouble of Redis and of the way to it becomes
 * `store_unavailable`.
 */
export class ScriptStore {
  readonly #scripts = loadScripts();
  readonly #stopWatch: () => void;
  readonly #limitMs: Millis;
  #hasContact = false;
  /** When something was last received on the present connection. */
  #heardAt: Millis = 0;
  readonly #writes: TurnWrites;
  #contact: Promise<void> | undefined;

  constructor(
    readonly redis: RedisClient,
    private readonly log: Log,
    readonly clock: Clock = systemClock,
  ) {
    redis.on("error", (error: Error) => log.warn({ error: error.message }, "redis connection failed"));
    redis.on("ready", () => {
      this.#hasContact = true;
      if (redis instanceof Redis) redis.stream.on("data", () => (this.#heardAt = clock.monotonic()));
    });
    if (redis instanceof Redis) closeGivenUp(redis, log);
    this.#writes = new TurnWrites(redis);
    this.#limitMs = limitOf(redis);
    this.#stopWatch = keepAlive(redis, { clock, log, limitMs: this.#limitMs });
  }

  /** Whether Redis was ever reached. */
  get hasContact(): boolean {
    return this.#hasContact;
  }

  /**
   * Whether there is a connection, as far as is known: one that has died without a word is found out within
   * seconds.
   */
  get isConnected(): boolean {
    return this.redis.status === "ready";
  }

  /**
   * Waits until Redis answers, however long it takes: a daemon may start before it does. Throws when
   * `stopping` aborts.
   */
  async open(stopping: AbortSignal): Promise<void> {
    const ready = new Promise<void>((resolve, reject) => {
      // Whoever has asked something before, as a scrape does, has connected it.
      if (this.isConnected) return resolve();
      this.redis.once("ready", resolve);
      stopping.addEventListener("abort", () => reject(new Error("stopped before Redis was reached")), {
        once: true,
      });
    });
    // The first attempt's failure is logged as every other; the client goes on trying.
    this.redis.connect().catch(() => {});
    await ready;
    // Loaded ahead, so that no request pays for it; a Redis that forgot them is told again.
    while (!(await this.#load())) {
      if (stopping.aborted) throw new Error("stopped before Redis had its scripts");
      await pause(this.clock, openAgainMs, stopping);
    }
  }

  /**
   * Whether one script may touch what belongs to different slots, as a key of the API and a partition do. One
   * Redis says so itself; a cluster never.
   */
  get hasOneSlot(): boolean {
    return this.redis instanceof Redis;
  }

  members(): Promise<readonly RedisMember[]> {
    return membersOf(this.redis);
  }

  async close(): Promise<void> {
    this.#stopWatch();
    // One that does not answer is left without a word.
    if (this.redis.status === "ready") await this.redis.quit().catch(() => {});
    this.redis.disconnect();
  }

  async #load(): Promise<boolean> {
    try {
      const all = [...this.#scripts.values()].flatMap((script) => [script, script.judged ?? []].flat());
      await Promise.all(all.map(({ text }) => this.redis.script("LOAD", text)));
      return true;
    } catch (error) {
      this.log.warn({ error: textOf(error) }, "redis did not take the scripts");
      return false;
    }
  }

  /** Asks at the end of this turn of the event loop, just before what the turn has asked is written. */
  atTurnEnd(ask: () => void): void {
    this.#writes.atTurnEnd(ask);
  }

  /**
   * Runs a plain command; again where it may have run without our hearing of it, which has to be harmless.
   */
  ask<Value>(command: (redis: RedisClient) => Promise<Value>): Promise<Value> {
    return this.#persist(() => command(this.redis));
  }

  /** Redis's time. */
  async now(): Promise<Millis> {
    const [seconds, micros] = await this.ask((redis) => redis.time());
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }

  /** Runs a plain command of which a second run would answer otherwise. */
  async askOnce<Value>(command: (redis: RedisClient) => Promise<Value>): Promise<Value> {
    try {
      return await this.#watched(() => command(this.redis));
    } catch (error) {
      throw storeFault(error);
    }
  }

  /** Runs a script with what its header names. Its request's id makes a second run harmless. */
  run<const Name extends ScriptName>(name: Name, keyOf: KeyOf, args: ScriptArgs): Promise<ScriptReply<Name>> {
    return this.call(name, { keys: { keyOf }, args });
  }

  /** The same for scripts that are run all the time: with keys and arguments that are written out before. */
  async call<const Name extends ScriptName>(name: Name, parts: CallParts): Promise<ScriptReply<Name>> {
    return parseReply(name, await this.#answer(makeCall(this.#scriptOf(name), parts)));
  }

  /**
   * The same for one that judges the API key of its caller first: undefined where that was not good, and
   * nothing was done. Its keys lie in more than one slot.
   */
  async callJudged<const Name extends ScriptName>(
    name: Name,
    parts: CallParts,
    asked: { readonly judgement: KeyJudgement; readonly asker: string },
  ): Promise<JudgedReply<Name> | undefined> {
    return parseJudged(name, await this.#answer(makeJudgedCall(this.#scriptOf(name), parts, asked)));
  }

  #scriptOf(name: ScriptName): Script {
    const script = this.#scripts.get(name);
    if (!script) throw new Error(`there is no script ${name}`);
    return script;
  }

  async #answer(call: ScriptCall): Promise<unknown> {
    // The client rejects what is asked while it has no connection: its offline queue is off.
    let isSent = false;
    const work = (): Promise<unknown> => {
      isSent ||= this.isConnected && !isEnding(this.redis);
      return this.#evaluate(call);
    };
    return await this.#persist(work).catch((error: unknown) => {
      throw isSent ? error : neverSent(error);
    });
  }

  /**
   * Where the connection broke under a command, or led to a Redis that is no longer a master, the command is
   * tried once more on the next connection.
   */
  async #persist<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      return await this.#watched(work);
    } catch (error) {
      if (!isConnectionFault(error) && refusalWord(error) !== "READONLY") throw storeFault(error);
      await this.#nextContact();
      return await this.#watched(work).catch((again: unknown) => {
        throw storeFault(again);
      });
    }
  }

  async #watched<Value>(work: () => Promise<Value>): Promise<Value> {
    const asked = this.#note();
    this.#writes.gather();
    try {
      return await work();
    } catch (error) {
      if (asked && isConnectionFault(error)) await this.#doubt(asked);
      throw error;
    }
  }

  /** Undefined for a cluster, because it is not known which of its connections is used. */
  #note(): SentMark | undefined {
    if (!(this.redis instanceof Redis) || this.redis.status !== "ready") return undefined;
    return { stream: this.redis.stream, at: this.clock.monotonic() };
  }

  /**
   * Gives a connection up at once that has received nothing for about a whole limit, while a command waited
   * for it. What was asked before may have been answered just after the command was sent.
   */
  async #doubt({ stream, at }: SentMark): Promise<void> {
    const isSilent = (): boolean =>
      this.clock.monotonic() - Math.max(at, this.#heardAt) >= this.#limitMs * wholeTime;
    if (!isSilent()) return;
    // Where this process was stopped for a while, the answers have come and are read before it goes on.
    await new Promise((resolve) => void setImmediate(resolve));
    if (stream.destroyed || !isSilent()) return;
    this.log.warn({ limitMs: this.#limitMs }, "redis connection closed that answered nothing");
    const closed = new Promise((resolve) => void stream.once("close", resolve));
    stream.destroy();
    await closed;
  }

  /**
   * Resolves when the connection stands, when one more attempt at it has failed, or when that lasts longer
   * than a command may: an attempt at a Redis whose sentinels are away ends only when one of them is back.
   * All who wait share one look at it.
   */
  #nextContact(): Promise<void> {
    const { redis } = this;
    if (redis.status === "end" || (redis.status === "ready" && !isEnding(redis))) return Promise.resolve();
    this.#contact ??= this.#attempt().finally(() => (this.#contact = undefined));
    return this.#contact;
  }

  #attempt(): Promise<void> {
    const { redis } = this;
    return new Promise((resolve) => {
      let isTried = redis.status === "connecting";
      const onConnecting = (): void => void (isTried = true);
      const onClose = (): void => {
        if (isTried) finish();
      };
      const finish = (): void => {
        cancel();
        redis.off("connecting", onConnecting).off("close", onClose).off("ready", finish).off("end", finish);
        resolve();
      };
      const cancel = this.clock.after(this.#limitMs, finish);
      redis.on("connecting", onConnecting).on("close", onClose).on("ready", finish).on("end", finish);
    });
  }

  async #evaluate(call: ScriptCall): Promise<unknown> {
    try {
      return await this.redis.sendCommand(byDigest(call));
    } catch (error) {
      if (refusalWord(error) !== "NOSCRIPT") throw error;
      return await this.redis.sendCommand(byText(call));
    }
  }
}
