import type { FastifyRequest } from "fastify";
import type { Paging } from "../spec/paging.js";

/** The defaults of docs/api.md#lists. */
export const pagingOf = (
  { limit = 20, offset = 0 }: PageQuery,
  { sees }: Pick<FastifyRequest, "sees"> = { sees: undefined },
): Paging => ({ limit, offset, ...(sees && { sees }) });

interface PageQuery {
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
}
