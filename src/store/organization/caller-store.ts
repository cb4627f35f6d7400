import type { CallerStore } from "../../access/admission.js";
import type { Rate } from "../../access/rate-limiter.js";
import { accessKey, type AccessPart, callerRateKey } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";
import { rateOf } from "./limit-store.js";

/** Requests of callers who are known without a look-up, at all daemons together. */
export class RedisCallerStore implements CallerStore {
  constructor(
    private readonly store: ScriptStore,
    /** How many of one caller; null: as many as come. */
    private readonly requestsPerMinute: number | null,
  ) {}

  get isLimited(): boolean {
    return this.requestsPerMinute !== null;
  }

  async admit(
    ...[caller, project, isUncounted = false]: Parameters<CallerStore["admit"]>
  ): ReturnType<CallerStore["admit"]> {
    const perMinute = isUncounted ? null : this.requestsPerMinute;
    const keyOf = (key: string): string =>
      key === "callerRate" ? callerRateKey(caller) : accessKey(key as AccessPart);
    const args = { project, perMinute: perMinute ?? "" };
    const { kind, payload: told } = await this.store.run("admit-caller", keyOf, args);
    return { kind, ...toldRate(perMinute, { isTaken: kind !== "limited", told }) };
  }
}

/** What a script that lets somebody in tells of the caller's rate, where there is one. */
export const toldRate = (
  perMinute: number | null,
  { isTaken, told }: Parameters<typeof rateOf>[1],
): { readonly rate?: Rate } =>
  perMinute === null || told === "" ? {} : { rate: rateOf(perMinute, { isTaken, told }) };
