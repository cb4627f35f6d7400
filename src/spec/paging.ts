import type { Guarded } from "../access/principal.js";

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly hasMore: boolean;
  readonly nextOffset: number;
}

export interface Paging {
  readonly limit: number;
  readonly offset: number;
  /** Whether the caller may see a thing; absent: all of them. Others are on no page and count nowhere. */
  readonly sees?: ((thing: Guarded) => boolean) | undefined;
}

export interface PoolListQuery extends Paging {
  /** The whole name, regardless of case and accents. */
  readonly name?: string;
  /** A part of the name, or the whole id. */
  readonly query?: string;
  readonly region?: string;
}

export interface SessionListQuery extends Paging {
  readonly status: "active" | "deleted" | "all";
  readonly query?: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly region?: string;
}

/** The text without case and accents, as lists compare it (docs/api.md#lists). */
export const folded = (text: string): string => text.normalize("NFD").replaceAll(/\p{M}/gu, "").toLowerCase();

export function pageOf<Item>(all: readonly Item[], { limit, offset }: Paging): Page<Item> {
  const items = all.slice(offset, offset + limit);
  return { items, hasMore: offset + limit < all.length, nextOffset: offset + items.length };
}

/** True where a list's filters select this: `name` is its whole name, `query` a part of it or its id. */
export function isWanted(
  thing: { readonly id: string; readonly name?: string },
  { name, query }: Pick<PoolListQuery, "name" | "query">,
): boolean {
  const ownName = folded(thing.name ?? "");
  if (name !== undefined && ownName !== folded(name)) return false;
  return query === undefined || thing.id === query || ownName.includes(folded(query));
}
