import { Type } from "typebox";
import { type Millis, timestampOf } from "../base/clock.js";
import { parserOf } from "../base/parser.js";

/**
 * Where an entry stands in the log: the instant at which it was put there (ms, 13 digits) and a number among
 * those of that instant. Positions compare as texts. An entry keeps its own for ever, so it is its
 * `event_id`.
 */
export type Position = string & { readonly __position: true };

/** What is known of a request when it ends, but for the time. */
export interface RequestFacts {
  /** `api_key`, `oauth` or `dashboard`; `lease` for a browser's own URLs; `none` where nobody was let in. */
  readonly authStrategy: string;
  readonly userId: string;
  readonly email: string;
  readonly status: number;
  readonly method: string;
  /** Without the query string, which may hold tokens. */
  readonly path: string;
  /** The route's template; empty where there is no such operation. */
  readonly route: string;
  /** The host that was asked for. */
  readonly domain: string;
  readonly clientIp: string;
  readonly userAgent: string;
}

/** An entry on its way into the log; its times are of this process's monotonic clock. */
export interface NewEntry extends RequestFacts {
  /** The intent that is carried out with it. */
  readonly intent?: string | undefined;
  readonly receivedAt: Millis;
  readonly durationMs: Millis;
}

/** The status of a change that was begun and of whose end nothing was heard. */
export const unheardStatus = 0;

/** What a request has left in the log. */
export interface Entry extends RequestFacts {
  readonly position: Position;
  /** When the request was received, by Redis's clock; never later than its position. */
  readonly at: Millis;
  readonly durationMs: Millis;
}

/** The texts that a search looks into, as it compares them. */
export const searchedTexts = (entry: Entry): readonly string[] => [
  entry.path.toLowerCase(),
  entry.userId.toLowerCase(),
  entry.email.toLowerCase(),
  entry.clientIp.toLowerCase(),
  String(entry.status),
];

/**
 * The most time between the receipt of a request and the position of its entry; what waits longer for the
 * store is lost. A request is answered within little more than an hour, which is the most that settings let
 * it wait for a browser or take for an upload; a slow reader of the answer does not put off its entry
 * (http/audit.ts). Only the entry of a change whose control has died may come later, and readers are told by
 * how much (`aheadMs`).
 */
export const longestMs: Millis = 7_200_000;

const atDigits = 13;
const numberDigits = 6;
const latestMs: Millis = 10 ** atDigits - 1;

/** `1763841234567-4`, as a stream calls it, becomes `1763841234567-000004`. */
export function positionOf(streamId: string): Position {
  const [at = "", number = ""] = streamId.split("-");
  return `${at.padStart(atDigits, "0")}-${number.padStart(numberDigits, "0")}` as Position;
}

/** The first position at or after an instant; of one that is before or after all positions, the nearest. */
export const positionAt = (at: Millis): Position =>
  `${String(Math.min(Math.max(1, Math.ceil(at)), latestMs)).padStart(atDigits, "0")}-${"0".repeat(numberDigits)}` as Position;

/** The last position before an instant. */
export const positionBefore = (at: Millis): Position =>
  `${String(Math.ceil(at) - 1).padStart(atDigits, "0")}-${"9".repeat(numberDigits)}` as Position;

/** When it was put there. */
export const instantOf = (position: Position): Millis => Number(position.slice(0, atDigits));

const positionPattern = "^\\d{13}-\\d{6}$";
const positionShape = new RegExp(positionPattern);
export const PositionText = Type.Unsafe<Position>(Type.String({ pattern: positionPattern }));
export const findPosition = (text: string): Position | undefined =>
  positionShape.test(text) ? (text as Position) : undefined;

/** An entry as the API shows it (docs/audit.md#entries). */
export const entryView = (entry: Entry) => ({
  timestamp: timestampOf(entry.at),
  auth_strategy: entry.authStrategy,
  user_id: entry.userId,
  email: entry.email,
  status: entry.status,
  method: entry.method,
  path: entry.path,
  route: entry.route,
  domain: entry.domain,
  duration_ms: entry.durationMs,
  client_ip: entry.clientIp,
  user_agent: entry.userAgent,
});
/** One line of an export and of a segment; the same entry always gives the same bytes. */
export const lineOf = (entry: Entry): string =>
  `${JSON.stringify({ event_id: entry.position, ...entryView(entry) })}\n`;

const lineStart = '{"event_id":"';
const positionLength = atDigits + 1 + numberDigits;
/** The position of a line, without reading the rest of it. */
export function positionInLine(line: Buffer): Position {
  const position = findPosition(line.toString("latin1", lineStart.length, lineStart.length + positionLength));
  if (position === undefined) throw new Error("a line of the audit log does not begin with its position");
  return position;
}

const lineParser = parserOf(
  "a line of the audit log",
  Type.Object({
    event_id: PositionText,
    timestamp: Type.String(),
    auth_strategy: Type.String(),
    user_id: Type.String(),
    email: Type.String(),
    status: Type.Number(),
    method: Type.String(),
    path: Type.String(),
    route: Type.String(),
    domain: Type.String(),
    duration_ms: Type.Number(),
    client_ip: Type.String(),
    user_agent: Type.String(),
  }),
);

/** Reads a line that `lineOf` has written. */
export function entryOfLine(line: string): Entry {
  const { event_id: position, ...view } = lineParser.json(line);
  return {
    position,
    at: Date.parse(view.timestamp),
    authStrategy: view.auth_strategy,
    userId: view.user_id,
    email: view.email,
    status: view.status,
    method: view.method,
    path: view.path,
    route: view.route,
    domain: view.domain,
    durationMs: view.duration_ms,
    clientIp: view.client_ip,
    userAgent: view.user_agent,
  };
}
