import type { Detail, Done, Refusal } from "../base/errors.js";
import { refusal, RemudaError } from "../base/errors.js";

/** Throws the error again unless the store could not be reached. */
export function rethrowUnlessStoreAway(error: unknown): void {
  if (!(error instanceof RemudaError && error.code === "store_unavailable")) throw error;
}

/** A refusal has it where the network is in force all the same. */
export const networkInForce: Detail = {
  code: "network_in_force",
  message: "What the browser may reach has changed as was asked for",
};

/** A refusal has it where the browser has the viewport or the profile all the same. */
const browserChanged: Detail = {
  code: "browser_changed",
  message: "The browser has taken the viewport and the profile that were asked for",
};

/**
 * Does what follows once the node has put a network in force. Where Redis cannot be reached for that, the
 * refusal tells the caller that the network is in force all the same.
 */
export async function withNetworkInForce<Value>(work: () => Promise<Value>): Promise<Value | Refusal> {
  try {
    return await work();
  } catch (error) {
    rethrowUnlessStoreAway(error);
    return refusal("store_unavailable", {
      message:
        "The network is in force; the store could not be reached for the rest. To send the same again is harmless",
      details: [networkInForce],
    });
  }
}

/**
 * Does what follows once the browser has taken a viewport or a profile. Where that is refused, or Redis
 * cannot be reached for it, the refusal tells the caller what the browser has.
 */
export async function withBrowserChanged<Value>(
  work: () => Promise<Done<Value> | Refusal>,
): Promise<Done<Value> | Refusal> {
  try {
    const outcome = await work();
    return outcome.kind === "done"
      ? outcome
      : { ...outcome, details: [...(outcome.details ?? []), browserChanged] };
  } catch (error) {
    rethrowUnlessStoreAway(error);
    return refusal("store_unavailable", {
      message: "The browser has changed; the store could not be reached for the rest",
      details: [browserChanged],
    });
  }
}
