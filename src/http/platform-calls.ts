import type { FastifyRequest } from "fastify";
import type { CapturingLease } from "../spec/caller.js";
import type { TellPlatformCall } from "../telemetry/platform-calls.js";
import { type Log, textOf } from "../base/log.js";
import type { App } from "./bare-app.js";

declare module "fastify" {
  interface FastifyRequest {
    /** Whose browser the request manages; an operation says so. */
    concerned: CapturingLease | Promise<CapturingLease> | undefined;
  }
}

interface PlatformCallParts {
  readonly tellPlatformCall: TellPlatformCall;
  readonly log: Log;
}

/**
 * Tells holders of the calls that manage their browsers, once these are answered (docs/telemetry.md#events).
 */
export function watchPlatformCalls(app: App, { tellPlatformCall, log }: PlatformCallParts): void {
  const tell = async (
    request: FastifyRequest,
    answered: { status: number; durationMs: number },
  ): Promise<void> => {
    const lease = await request.concerned;
    const { operationId = "" } = request.routeOptions.schema ?? {};
    if (lease) tellPlatformCall(lease, { requestId: request.id, operationId, ...answered });
  };
  app.addHook("onResponse", (request, reply, next) => {
    next();
    if (!request.concerned) return;
    tell(request, { status: reply.statusCode, durationMs: reply.elapsedTime }).catch((error: unknown) =>
      log.warn({ request: request.id, error: textOf(error) }, "call not told among the events"),
    );
  });
}
