import { keysWithin, keysWritten } from "./json-keys.js";

/** One command of a client, as the gate judges it and as it is forwarded. */
export interface Command {
  readonly id: number;
  readonly method: string;
  readonly params: Params;
  /** The CDP session it is meant for, absent for the client's root. */
  readonly session?: string;
}

export type Params = Readonly<Record<string, unknown>>;

/** A command, or the error reply that Chromium itself would give. */
export type Parsed = { readonly kind: "command"; readonly command: Command } | { readonly kind: "fault"; readonly reply: string };

/** CDP error codes, as Chromium uses them. */
export const codes = { parse: -32700, invalid: -32600, sessionGone: -32001, refused: -32000 } as const;

export interface Addressee {
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

export const resultReply = (to: Addressee, result: object): string =>
  JSON.stringify({ id: to.id, result, ...(to.session === undefined ? {} : { sessionId: to.session }) });

const fault = (code: number, message: string, id?: number): Parsed => ({
  kind: "fault",
  reply: errorReply(id === undefined ? {} : { id }, code, message),
});

const known = new Set(["id", "method", "params", "sessionId"]);
const highestId = 2 ** 31 - 1;
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
// Chromium accepts an empty array and null for "no params".
const isNothing = (value: unknown): boolean =>
  value === undefined || value === null || (Array.isArray(value) && value.length === 0);

/**
 * Parses once. What is forwarded is what was parsed, serialised again: odd escapes end here. A key that occurs twice in an
 * object, at whatever depth, is a fault: its sender may have meant the other value.
 */
export function parseCommand(text: string): Parsed {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return fault(codes.parse, "JSON: the message cannot be parsed");
  }
  if (!isObject(message)) return fault(codes.invalid, "Message must be an object");
  const parsed = checked(message);
  if (parsed.kind === "fault" || keysWritten(text) === keysWithin(message)) return parsed;
  return fault(codes.invalid, "Message must not have a property twice", parsed.command.id);
}

function checked(message: Record<string, unknown>): Parsed {
  const { id, method, params, sessionId } = message;
  if (typeof id !== "number" || !Number.isInteger(id) || Math.abs(id) > highestId) {
    return fault(codes.invalid, "Message must have integer 'id' property");
  }
  if (typeof method !== "string") return fault(codes.invalid, "Message must have string 'method' property", id);
  if (!isObject(params) && !isNothing(params)) return fault(codes.invalid, "Message may have object 'params' property", id);
  if (sessionId !== undefined && typeof sessionId !== "string") {
    return fault(codes.invalid, "Message may have string 'sessionId' property", id);
  }
  if (Object.keys(message).some((key) => !known.has(key))) {
    return fault(codes.invalid, "Message has property other than 'id', 'method', 'sessionId', 'params'", id);
  }
  const session = sessionId === undefined || sessionId === "" ? {} : { session: sessionId };
  return { kind: "command", command: { id, method, params: isObject(params) ? params : {}, ...session } };
}
