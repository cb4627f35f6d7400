import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import type { Clock, Millis } from "../base/clock.js";
import { isRecord } from "../base/is-record.js";
import { type Log, textOf } from "../base/log.js";
import { readAnswer } from "../base/net/read-answer.js";

/** There are no keys by which a token could be judged, and they cannot be fetched now. */
export class KeysUnavailable extends Error {}

interface KeySetSettings {
  readonly issuer: string;
  /** Null: where the issuer's discovery document says. */
  readonly jwksUrl: string | null;
  /** Fetched again after, in the background while those there are may be used still. */
  readonly keysRefreshMs: Millis;
  /** Used for so long where they cannot be fetched again. */
  readonly keysKeepMs: Millis;
  /** Fetched once in, whether that succeeds or not. */
  readonly keysCooldownMs: Millis;
  readonly fetchLimitMs: Millis;
}

interface KeySetParts extends KeySetSettings {
  readonly clock: Clock;
  readonly log: Log;
}

type FetchedKeys = { readonly find: ReturnType<typeof createLocalJWKSet>; readonly at: Millis };

/** Documents with hundreds of keys are smaller. */
const maxBytes = 256 * 1024;

/**
 * The keys of an issuer. Whoever comes with tokens cannot have them fetched more often than once in the
 * cooldown, and who comes with a key that is known never waits for a fetch.
 */
export class KeySet {
  #known: FetchedKeys | undefined;
  #triedAt: Millis | undefined;
  #fetching: Promise<void> | undefined;

  constructor(private readonly parts: KeySetParts) {}

  /** Finds the key that a token names. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const known = await this.#usable();
    try {
      return await known.find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      // It may be a new one.
      await this.#fetchAgain();
      if (this.#known === undefined || this.#known === known) throw error;
      return await this.#known.find(header, token);
    }
  };

  async #usable(): Promise<FetchedKeys> {
    const { keysRefreshMs, keysKeepMs } = this.parts;
    if (this.#ageMs() > keysRefreshMs) {
      const fetching = this.#fetchAgain();
      if (this.#ageMs() > keysKeepMs) await fetching;
    }
    if (this.#known === undefined || this.#ageMs() > keysKeepMs) throw new KeysUnavailable();
    return this.#known;
  }

  #ageMs(): Millis {
    return this.#known === undefined ? Infinity : this.parts.clock.monotonic() - this.#known.at;
  }

  /** All who need it share one fetch; within the cooldown there is none. */
  #fetchAgain(): Promise<void> {
    if (this.#fetching) return this.#fetching;
    const now = this.parts.clock.monotonic();
    if (this.#triedAt !== undefined && now - this.#triedAt < this.parts.keysCooldownMs)
      return Promise.resolve();
    this.#triedAt = now;
    this.#fetching = this.#fetch().finally(() => (this.#fetching = undefined));
    return this.#fetching;
  }

  async #fetch(): Promise<void> {
    const { clock, log, fetchLimitMs, issuer } = this.parts;
    const abort = new AbortController();
    const cancel = clock.after(fetchLimitMs, () =>
      abort.abort(new Error(`nothing within ${fetchLimitMs} ms`)),
    );
    try {
      const keys = await fetchJson(await this.#keysUrl(abort.signal), abort.signal);
      this.#known = { find: createLocalJWKSet(keys as JSONWebKeySet), at: clock.monotonic() };
    } catch (error) {
      log.warn({ issuer, error: textOf(error) }, "the issuer's keys could not be fetched");
    } finally {
      cancel();
    }
  }

  async #keysUrl(signal: AbortSignal): Promise<string> {
    const { issuer, jwksUrl } = this.parts;
    if (jwksUrl !== null) return jwksUrl;
    // OpenID Connect Discovery 1.0, 4.
    const at = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const found = await fetchJson(at, signal);
    if (!isRecord(found) || found["issuer"] !== issuer) throw new Error(`${at} is another issuer's`);
    const { jwks_uri: url } = found;
    if (typeof url !== "string" || !isAsSafe(url, issuer)) throw new Error(`${at} names no keys`);
    return url;
  }
}

/** An issuer behind TLS has its keys there too. */
const isAsSafe = (url: string, issuer: string): boolean =>
  url.startsWith("https://") || (url.startsWith("http://") && issuer.startsWith("http://"));

/**
 * The JSON at a URL, and nothing that it leads to: a redirect could lead anywhere. The signal ends the wait
 * for the head and for the body alike.
 */
async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const reply = await fetch(url, { redirect: "error", signal, headers: { accept: "application/json" } });
  try {
    if (reply.status !== 200) throw new Error(`${url} answered ${reply.status}`);
    return JSON.parse(await readAnswer(reply, { mostBytes: maxBytes, signal }));
  } finally {
    if (!reply.bodyUsed) await reply.body?.cancel();
  }
}
