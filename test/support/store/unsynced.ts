import type { DurableWrites } from "../../../src/store/redis/durable-writes.js";

/** Writes as Redis does it. */
export const unsynced: Pick<DurableWrites, "write"> = { write: (work) => work() };
