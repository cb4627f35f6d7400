import type { onRequestHookHandler } from "fastify";
import type { RateLimiter } from "../access/rate-limiter.js";
import { refusal } from "../base/errors.js";
import { sendRefusal } from "./errors.js";

/**
 * Holds an operation to its rate before anything of the request is looked at, so that every answer to it says
 * how many are left (docs/limits.md#rates). Undefined where none is set: nothing is asked then.
 */
export function limitedBy(limiter: RateLimiter | undefined, bucket: string): onRequestHookHandler[] {
  if (!limiter) return [];
  return [
    async (_request, reply) => {
      const got = await limiter.take(bucket);
      const remaining = got.kind === "taken" ? got.remaining : 0;
      reply.headers({ "x-ratelimit-limit": limiter.perMinute, "x-ratelimit-remaining": remaining });
      if (got.kind === "taken") return;
      const retryAfterSeconds = Math.max(1, Math.ceil(got.retryAfterMs / 1000));
      await sendRefusal(reply, refusal("rate_limit_exceeded", { retryAfterSeconds }));
    },
  ];
}
