import { refusal, type Refusal } from "../base/errors.js";
import type { CreateReply } from "../pool/ports/store-replies.js";
import type { LaunchFailure } from "../pool/ports/messages.js";
import { finalAnswer, type LeaseReply, type NotServed } from "./lease-attempt.js";

export const noRoom = (obstacle: string): Refusal =>
  refusal("capacity_exhausted", {
    retryAfterSeconds: 5,
    ...(obstacle && { details: [{ code: "capacity_exhausted", message: obstacle }] }),
  });

const whoseLimit = {
  concurrent: {
    of: "organization",
    message: "The organization has as many concurrent sessions as it may have, pools included",
  },
  ofProject: {
    of: "project",
    message: "The project has as many concurrent sessions as it may have, pools included",
  },
  onDemand: { of: "project", message: "The project has as many sessions on demand as it may have" },
} as const;
export function tooMany(limit: keyof typeof whoseLimit, most: number): Refusal {
  const { of, message } = whoseLimit[limit];
  return refusal("too_many_sessions", { message, retryAfterSeconds: 5, reached: { of, most } });
}
/** What the store has answered, as a caller is to hear it. */
export function answerOf(
  reply: CreateReply,
  { full, obstacle }: { readonly full: Refusal; readonly obstacle: string },
): LeaseReply<Refusal> {
  switch (reply.kind) {
    case "granted":
    case "waiting":
      return reply;
    case "claimed":
      return { kind: "waiting", waiter: reply.waiter, lease: reply.lease };
    case "none":
      return finalAnswer(noRoom(obstacle));
    case "full":
      return finalAnswer(full);
    case "mismatch":
      return finalAnswer(refusal("idempotency_mismatch"));
    case "over":
      return finalAnswer(refusal("lease_ended"));
    case "superseded":
      return finalAnswer(supersededRefusal());
  }
}

const supersededRefusal = (): Refusal =>
  refusal("conflict", { message: "A retry has taken this request's place" });

/** Why a session that was waited for has not come. */
export function refusedLaunch({ why }: NotServed, failures: readonly LaunchFailure[]): Refusal {
  switch (why) {
    case "failed":
      return refusal("launch_failed", {
        details: failures.map(({ node, error }) => ({ code: "launch_failed", message: `${node}: ${error}` })),
      });
    case "stopping":
      return refusal("draining");
    case "forgotten":
      return refusal("unavailable", {
        retryAfterSeconds: 1,
        message: "The launch was given up while this daemon stood still",
      });
    case "superseded":
      return supersededRefusal();
    case "deleted":
    case "gone":
    case "timeout":
      return refusal("launch_failed", { message: "The browser was not launched in time" });
  }
}
