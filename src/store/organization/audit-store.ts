import type { AuditStore, EntryBatch, Intent, LogManifest } from "../../audit/audit-store.js";
import {
  type Entry,
  instantOf,
  longestMs,
  type NewEntry,
  type Position,
  positionAt,
  positionOf,
  type RequestFacts,
} from "../../audit/entry.js";
import { type SealedSegment, segmentParser } from "../../audit/segment.js";
import type { Millis } from "../../base/clock.js";
import type { Digest } from "../../base/ids.js";
import { auditKey, type AuditPart, auditWriterKey } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";

/** What an entry needs in the stream beside its row (lua/audit/append-entries.lua counts the same). */
const entryBytes = 60;
const segmentsAtOnce = 1000;
/** The most changes that may be under way at all daemons: far more than there are requests. */
const mostIntents = 10_000;

/** A stream with the newest entries, and a sorted set with the manifest of the segments. */
export class RedisAuditStore implements AuditStore {
  constructor(
    private readonly store: ScriptStore,
    private readonly mostBytes: number,
  ) {}

  async append({ writer, number, entries, sentAt }: EntryBatch): Promise<"appended" | "full"> {
    const lines = entries.map((entry) => `${ageOf(entry, sentAt)} ${rowOf(entry)}`);
    const intents = entries
      .map(({ intent }) => intent)
      .filter((intent) => intent !== undefined)
      .join(" ");
    const args = { number, entries: lines.join("\n"), intents, mostBytes: this.mostBytes, longestMs };
    const keyOf = (key: string): string => (key === "auditWriter" ? auditWriterKey(writer) : keyOfPart(key));
    return (await this.store.run("append-entries", keyOf, args)).kind;
  }

  async noteIntent({ id, entry, sentAt }: Intent): Promise<"noted" | "full"> {
    const { mostBytes } = this;
    const args = { id, age: ageOf(entry, sentAt), row: rowOf(entry), mostIntents, mostBytes };
    return (await this.store.run("note-intent", keyOfPart, args)).kind;
  }

  async settleIntents(silentMs: Millis): Promise<number> {
    const args = { silentMs, longestMs };
    return Number((await this.store.run("settle-intents", keyOfPart, args)).payload);
  }

  async newest(before: Position, since: Millis, most: number): Promise<readonly Entry[]> {
    const [from, to] = [idOf(positionAt(since)), `(${idOf(before)}`];
    const rows = await this.store.ask((redis) =>
      redis.xrevrange(auditKey("auditStream"), to, from, "COUNT", most),
    );
    return rows.map(entryOf);
  }

  async oldest(after: Position | undefined, most: number): Promise<readonly Entry[]> {
    const from = after === undefined ? "-" : `(${idOf(after)}`;
    const rows = await this.store.ask((redis) =>
      redis.xrange(auditKey("auditStream"), from, "+", "COUNT", most),
    );
    return rows.map(entryOf);
  }

  async size(): Promise<{ entries: number; bytes: number; at: Millis }> {
    const [entries, bytes, at] = await Promise.all([
      this.store.ask((redis) => redis.xlen(auditKey("auditStream"))),
      this.store.ask((redis) => redis.hget(auditKey("auditState"), "bytes")),
      this.store.now(),
    ]);
    return { entries, bytes: Number(bytes ?? 0), at };
  }

  async manifest(): Promise<LogManifest> {
    const [[last, hash, forgotten], oldest] = await Promise.all([
      this.store.ask((redis) => redis.hmget(auditKey("auditState"), "last", "hash", "forgotten")),
      this.store.ask((redis) => redis.zrange(auditKey("auditSegments"), "0", "0", "WITHSCORES")),
    ]);
    const newest = Number(last ?? 0);
    return {
      first: Number(oldest[1] ?? newest + 1),
      last: newest,
      hash: hash ?? "",
      ...(forgotten && { forgotten: forgotten as Position }),
    };
  }

  async segments(from: number, to: number): Promise<readonly SealedSegment[]> {
    const records = await this.store.ask((redis) => redis.zrangebyscore(auditKey("auditSegments"), from, to));
    return records.map((record) => segmentParser.json(record));
  }

  async aheadMs(): Promise<Millis> {
    return Number((await this.store.ask((redis) => redis.hget(auditKey("auditState"), "aheadMs"))) ?? 0);
  }

  async commit(
    ...[segment, entries, readAt]: Parameters<AuditStore["commit"]>
  ): Promise<"committed" | "stale"> {
    const { number, hash, previous, first, last } = segment;
    const bytes = entries.reduce((sum, entry) => sum + bytesOf(entry), 0);
    const record = JSON.stringify(segment);
    const ends = { first: idOf(first), last: idOf(last), after: idAfter(last) };
    const args = { number, record, hash, previous, bytes, readAt, ...ends };
    return (await this.store.run("commit-segment", keyOfPart, args)).kind;
  }

  /** Every archive that a segment names. */
  async archives(): Promise<readonly Digest[]> {
    const { first, last } = await this.manifest();
    const named: Digest[] = [];
    for (let from = first; from <= last; from += segmentsAtOnce) {
      const segments = await this.segments(from, from + segmentsAtOnce - 1);
      named.push(...segments.flatMap(({ rows, grams }) => [rows, grams]));
    }
    return named;
  }

  async drop({ number, last }: Pick<SealedSegment, "number" | "last">): Promise<void> {
    await this.store.ask((redis) => redis.hset(auditKey("auditState"), "forgotten", last));
    await this.store.ask((redis) => redis.zremrangebyscore(auditKey("auditSegments"), "-inf", number));
  }
}

const keyOfPart = (key: string): string => auditKey(key as AuditPart);

const partsOf = (position: Position): readonly [at: number, number: number] => [
  instantOf(position),
  Number(position.slice(position.indexOf("-") + 1)),
];
const idOf = (position: Position): string => partsOf(position).join("-");
function idAfter(position: Position): string {
  const [at, number] = partsOf(position);
  return `${at}-${number + 1}`;
}

/**
 * At least 1 ms: Redis may look at its clock anew for an entry's place, which is never before its request.
 */
const ageOf = ({ receivedAt }: NewEntry, sentAt: Millis): number =>
  Math.max(1, Math.round(sentAt - receivedAt));

/**
 * An entry as the stream keeps it, but for its instant. One text: Redis takes it as it is, for half the time.
 */
const rowOf = (facts: RequestFacts & { readonly durationMs: Millis }): string =>
  JSON.stringify([
    facts.authStrategy,
    facts.userId,
    facts.email,
    facts.status,
    facts.method,
    facts.path,
    facts.route,
    facts.domain,
    Math.round(facts.durationMs),
    facts.clientIp,
    facts.userAgent,
  ] satisfies EntryRow);
type EntryRow = [string, string, string, number, string, string, string, string, number, string, string];

/**
 * What stands for a row of another form, so that it is in the log and holds up nothing that comes after it.
 */
const unreadable: EntryRow = ["", "", "", 0, "", "(written by another version)", "", "", 0, "", ""];
const isRow = (row: unknown): row is EntryRow =>
  Array.isArray(row) &&
  row.length === unreadable.length &&
  row.every((value, place) => typeof value === typeof unreadable[place]);

function rowIn(text: string): EntryRow {
  try {
    const row: unknown = JSON.parse(text);
    return isRow(row) ? row : unreadable;
  } catch {
    return unreadable;
  }
}

function entryOf([id, fields]: [id: string, fields: string[]]): Entry {
  const [, received, , text = ""] = fields;
  const [authStrategy, userId, email, status, method, path, route, domain, durationMs, clientIp, userAgent] =
    rowIn(text);
  const [position, at] = [positionOf(id), Number(received)];
  return {
    position,
    at: Number.isFinite(at) ? at : instantOf(position),
    authStrategy,
    userId,
    email,
    status,
    method,
    path,
    route,
    domain,
    durationMs,
    clientIp,
    userAgent,
  };
}

const bytesOf = (entry: Entry): number => entryBytes + Buffer.byteLength(rowOf(entry));
