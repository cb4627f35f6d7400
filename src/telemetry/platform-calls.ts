import type { CapturingLease } from "../spec/caller.js";
import type { TellHolder } from "./tell-holder.js";

/** A call to the API that managed a browser, once it was answered. */
interface PlatformCall {
  readonly requestId: string;
  readonly operationId: string;
  readonly status: number;
  readonly durationMs: number;
}

/** Tells a lease's holder of a call, where that is captured. Never throws and never waits. */
export type TellPlatformCall = (lease: CapturingLease, call: PlatformCall) => void;

export const makeTellPlatformCall =
  (tell: TellHolder): TellPlatformCall =>
  (lease, { requestId, operationId, status, durationMs }) =>
    tell(lease, {
      type: "platform_api_call",
      category: "platform",
      source: { kind: "kernel_api" },
      data: {
        request_id: requestId,
        operation_id: operationId,
        status,
        duration_ms: Math.round(durationMs * 1000) / 1000,
      },
    });
