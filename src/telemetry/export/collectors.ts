import type { Agent } from "node:http";
import type { Secret } from "../../base/crypto/secret.js";
import type { OtlpDestinationId } from "../../base/ids.js";

/** Where events are sent to, and with what; another revision is another one. */
export interface Collector {
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, Secret>>;
  readonly revision: number;
}

/** What exporters need to know of destinations. */
export interface Collectors {
  /** Undefined: there is no such destination any more. Throws where that cannot be told now. */
  open(id: OtlpDestinationId): Promise<Collector | undefined>;
  /** Notes what came of a delivery; `error` is one of a fixed set of sentences. */
  noteDelivery(id: OtlpDestinationId, error: string | undefined): Promise<void>;
  /** Opens connections, to addresses that may be reached only. */
  agentFor(protocol: string): Agent;
  /** Whether a request has failed because its address may not be reached. */
  isClosed(error: unknown): boolean;
}
