import { isRecord } from "../../base/is-record.js";
import type { ReportedCommand } from "../../telemetry/commands/tell.js";
import { keysWithin, measure, type JsonShapeLimits } from "./json-shape.js";

/** One command of a client, as the gate judges it and as it is forwarded. */
export interface Command {
  readonly id: number;
  readonly method: string;
  readonly params: Params;
  /** The CDP session it is meant for, absent for the client's root. */
  readonly session?: string;
  /**
   * `"method":…,"params":…` in UTF-8, where another thread has written it; `params` is then only what is
   * looked at later.
   */
  readonly written?: Uint8Array;
  /** What an event may say of it, where another thread has read it for somebody who listens. */
  readonly told?: ReportedCommand;
}

export type Params = Readonly<Record<string, unknown>>;

/** A command, or the error reply that Chromium itself would give. */
type Parsed =
  | { readonly kind: "command"; readonly command: Command }
  | { readonly kind: "fault"; readonly reply: string };

/** CDP error codes, as Chromium uses them. */
export const codes = { parse: -32700, invalid: -32600, sessionGone: -32001, refused: -32000 } as const;

interface Addressee {
  readonly id?: number;
  readonly session?: string;
}

/** Chromium's order: `id` first, `sessionId` last. */
export const errorReply = (to: Addressee, code: number, message: string): string =>
  JSON.stringify({
    ...(to.id === undefined ? {} : { id: to.id }),
    error: { code, message },
    ...(to.session === undefined ? {} : { sessionId: to.session }),
  });

/** The reply to a command that could not be carried out. */
export const unprocessable = (to: Addressee): string =>
  errorReply(to, codes.refused, "The message cannot be processed");

export const resultReply = (to: Addressee, result: object): string =>
  JSON.stringify({ id: to.id, result, ...(to.session === undefined ? {} : { sessionId: to.session }) });

const fault = (code: number, message: string, id?: number): Parsed => ({
  kind: "fault",
  reply: errorReply(id === undefined ? {} : { id }, code, message),
});

const known = new Set(["id", "method", "params", "sessionId"]);
const highestId = 2 ** 31 - 1;
// Chromium accepts an empty array and null for "no params".
const isNothing = (value: unknown): boolean =>
  value === undefined || value === null || (Array.isArray(value) && value.length === 0);

/** Chromium 156 reads messages of clients to this depth. */
const mostDepth = 300;
/** Some 50 ms of reading, judging and writing. */
const mostValues = 200_000;
export const shapeLimits: JsonShapeLimits = { depth: mostDepth, values: mostValues };

const overfull = {
  "too deep": `Message must not be nested deeper than ${mostDepth}`,
  "too many": `Message must not have more than ${mostValues} keys and elements`,
} as const;

/**
 * Parses once. What is forwarded is what was parsed, serialised again: odd escapes end here. A key that
 * occurs twice in an object, at whatever depth, is a fault: its sender may have meant the other value.
 * Nesting and number of values are judged before anything is parsed. `shape` is what `measure` has found,
 * where it was asked before.
 */
export function parseCommand(text: Buffer, shape = measure(text, shapeLimits)): Parsed {
  if (typeof shape === "string")
    return { kind: "fault", reply: errorReply(guessAddressee(text), codes.invalid, overfull[shape]) };
  let message: unknown;
  try {
    message = JSON.parse(text.toString());
  } catch {
    return fault(codes.parse, "JSON: the message cannot be parsed");
  }
  if (!isRecord(message)) return fault(codes.invalid, "Message must be an object");
  const parsed = checked(message);
  if (parsed.kind === "fault" || shape.keys === keysWithin(message)) return parsed;
  return fault(codes.invalid, "Message must not have a property twice", parsed.command.id);
}

const headBytes = 64;
const tailBytes = 64;
const idHead = /^\s*\{\s*"id"\s*:\s*(\d{1,10})\s*,/;
const sessionTail = /"sessionId"\s*:\s*"([0-9A-Za-z-]{1,40})"\s*\}\s*$/;

/**
 * Guesses the id and session of a message that is not parsed: clients write the id first and the session
 * last.
 */
export function guessAddressee(text: Buffer): Addressee {
  const id = idHead.exec(text.toString("latin1", 0, headBytes))?.[1];
  const session = sessionTail.exec(text.toString("latin1", Math.max(0, text.length - tailBytes)))?.[1];
  return { ...(id === undefined ? {} : { id: Number(id) }), ...(session === undefined ? {} : { session }) };
}

function checked(message: Record<string, unknown>): Parsed {
  const { id, method, params, sessionId } = message;
  if (typeof id !== "number" || !Number.isInteger(id) || Math.abs(id) > highestId) {
    return fault(codes.invalid, "Message must have integer 'id' property");
  }
  if (typeof method !== "string")
    return fault(codes.invalid, "Message must have string 'method' property", id);
  if (!isRecord(params) && !isNothing(params))
    return fault(codes.invalid, "Message may have object 'params' property", id);
  if (sessionId !== undefined && typeof sessionId !== "string") {
    return fault(codes.invalid, "Message may have string 'sessionId' property", id);
  }
  if (Object.keys(message).some((key) => !known.has(key))) {
    return fault(codes.invalid, "Message has property other than 'id', 'method', 'sessionId', 'params'", id);
  }
  const session = sessionId === undefined || sessionId === "" ? {} : { session: sessionId };
  return { kind: "command", command: { id, method, params: isRecord(params) ? params : {}, ...session } };
}
