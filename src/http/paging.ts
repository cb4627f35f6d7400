import type { Paging } from "../spec/paging.js";

/** The contract's defaults (wire-facts.md 2.1). */
export const pagingOf = ({ limit = 20, offset = 0 }: Asked): Paging => ({ limit, offset });

interface Asked {
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
}
