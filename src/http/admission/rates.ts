import type { IncomingMessage } from "node:http";
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from "fastify";
import { type Rate, type RateLimiter, refusedBy } from "../../access/rate-limiter.js";
import { bearerOf } from "../../base/crypto/bearer.js";
import type { Refusal } from "../../base/errors.js";
import type { HttpDeps } from "../deps.js";
import { sendRefusal } from "../errors.js";
import { lacksPermission } from "./authorization.js";

const remainingHeader = "x-ratelimit-remaining";

/** Tells in headers what is left of a rate; where a request comes under two, that of which less is left. */
export function tellRate(reply: FastifyReply, { perMinute, remaining }: Rate): void {
  const told = reply.getHeader(remainingHeader);
  if (told !== undefined && Number(told) <= remaining) return;
  reply.header("x-ratelimit-limit", perMinute).header(remainingHeader, remaining);
}

/**
 * Holds an operation to its rate before the body of the request is looked at, so that every answer to it says
 * how many are left (docs/limits.md#rates). Whoever may not do it at all takes nothing from those who may. No
 * hook where no rate is set: nothing is asked then.
 */
export function limitedBy(limiter: RateLimiter | undefined, bucket: string): onRequestHookHandler[] {
  if (!limiter) return [];
  return [
    async (request, reply) => {
      if (lacksPermission(request)) return;
      const rate = await limiter.take(bucket);
      tellRate(reply, rate);
      const refused = refusedBy(rate);
      if (refused) await sendRefusal(reply, refused);
    },
  ];
}

/** Notes a credential that was not good; why whoever has shown it is to wait, where too many have failed. */
export type NoteFailedLogin = (request: FastifyRequest, refused: Refusal) => Refusal | undefined;
export const makeNoteFailedLogin =
  (
    { failedLogins }: Pick<HttpDeps, "failedLogins">,
    addressOf: (raw: IncomingMessage) => string,
  ): NoteFailedLogin =>
  ({ raw, headers }, { code }) =>
    code === "unauthorized" && bearerOf(headers.authorization) !== undefined
      ? failedLogins.note(addressOf(raw))
      : undefined;
