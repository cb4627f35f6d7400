import { type Static, Type } from "typebox";
import { isExhausted } from "../../base/errno.js";
import { type ErrorCode, errorCodes } from "../../base/errors.js";
import { textOf } from "../../base/log.js";
import { parserOf } from "../../base/parser.js";

const CommandFailure = Type.Object({
  isDone: Type.Literal(false),
  /** Why, for people; nothing has changed. */
  text: Type.Optional(Type.String()),
  /** What it is answered as, where it is known whose fault it is. */
  code: Type.Optional(Type.Enum(errorCodes)),
});
const CommandResult = Type.Union([
  Type.Object({
    isDone: Type.Literal(true),
    /** What was asked for, where the question asked for something. */
    payload: Type.Optional(Type.String()),
  }),
  CommandFailure,
]);

/** What became of a question to this node, for whoever asked. */
export type CommandResult = Readonly<Static<typeof CommandResult>>;
export type CommandFailure = Readonly<Static<typeof CommandFailure>>;
export const commandResultParser = parserOf("the reply of a node", CommandResult);

export const succeeded: CommandResult = { isDone: true };
export const failed = (text?: string, code?: ErrorCode): CommandFailure => ({
  isDone: false,
  ...(text !== undefined && { text }),
  ...(code && { code }),
});

/** Thrown on the way to an answer of this code. */
export class CommandRefused extends Error {
  constructor(
    readonly code: ErrorCode,
    text: string,
  ) {
    super(text);
    this.name = "Refused";
  }
}

export function resultOfError(error: unknown): CommandFailure {
  if (isExhausted(error)) return failed(nodeExhausted, "unavailable");
  return failed(textOf(error), error instanceof CommandRefused ? error.code : undefined);
}

/** The system's own words would name paths of the node. */
const nodeExhausted =
  "The browser's node has run out of disk space, descriptors or memory, or its disk fails";
