import type { EventCategory, NavigationFacts } from "../event.js";
import type { ProtocolRecord } from "./protocol-record.js";

/** An event as it was read, before it is known where it happened. */
export interface Reading {
  readonly type: string;
  readonly category: EventCategory;
  readonly data: ProtocolRecord;
  readonly wasCut: boolean;
  /** True where `data` says by itself where it happened. */
  readonly saysWhere?: true;
  readonly navigation?: NavigationFacts;
}
