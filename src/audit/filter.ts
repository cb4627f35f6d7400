import type { Millis } from "../base/clock.js";
import { type Entry, searchedTexts } from "./entry.js";
import { type NgramFilter, mayHold } from "./ngram-filter.js";
import type { Segment } from "./segment.js";

/** Which entries are asked for. */
export interface AuditFilter {
  readonly start: Millis;
  /** Not included. */
  readonly end: Millis;
  readonly authStrategy?: string;
  readonly service?: string;
  readonly method?: string;
  readonly excludedMethods?: readonly string[];
  /** A part of the path, user id, e-mail address or client's address, or the status; in any case. */
  readonly search?: string;
  /** Entries of these users are found as well as those that `search` finds. */
  readonly searchUserIds?: readonly string[];
}

/** The one service whose requests are here. */
const service = "api";

/** Tells which entries are selected; made once for many. */
export function selectorOf(filter: AuditFilter): (entry: Entry) => boolean {
  const excluded = new Set(filter.excludedMethods);
  const isFound = finderOf(filter);
  if (!isOfService(filter)) return () => false;
  return (entry) =>
    entry.at >= filter.start &&
    entry.at < filter.end &&
    (filter.authStrategy === undefined || entry.authStrategy === filter.authStrategy) &&
    (filter.method === undefined || entry.method === filter.method) &&
    !excluded.has(entry.method) &&
    isFound(entry);
}

const isOfService = (filter: AuditFilter): boolean =>
  filter.service === undefined || filter.service === service;

function finderOf({ search, searchUserIds = [] }: AuditFilter): (entry: Entry) => boolean {
  const users = new Set(searchUserIds);
  if (search === undefined && users.size === 0) return () => true;
  const text = search?.toLowerCase();
  return (entry) =>
    users.has(entry.userId) ||
    (text !== undefined && searchedTexts(entry).some((searched) => searched.includes(text)));
}

/** False where the manifest tells that nothing in a segment is selected. */
export function mayBeIn(filter: AuditFilter, segment: Segment): boolean {
  const { methods, strategies, from, to } = segment;
  return (
    isOfService(filter) &&
    to >= filter.start &&
    from < filter.end &&
    (filter.authStrategy === undefined || strategies.includes(filter.authStrategy)) &&
    (filter.method === undefined || methods.includes(filter.method)) &&
    methods.some((method) => filter.excludedMethods?.includes(method) !== true)
  );
}

export const isSearch = ({ search, searchUserIds = [] }: AuditFilter): boolean =>
  search !== undefined || searchUserIds.length > 0;

/** False where a segment's summary tells that a search finds nothing in it. */
export const mayBeFound = ({ search, searchUserIds = [] }: AuditFilter, grams: NgramFilter): boolean =>
  [...(search === undefined ? [] : [search]), ...searchUserIds].some((text) =>
    mayHold(grams, text.toLowerCase()),
  );
