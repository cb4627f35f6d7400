import type { ErrorCode } from "../../base/errors.js";
import { textOf } from "../../base/log.js";

/** What became of a question to this node, for whoever asked. */
export type CommandResult = { readonly isDone: true } | CommandFailure;

export interface CommandFailure {
  readonly isDone: false;
  /** Why, for people; nothing has changed. */
  readonly text?: string;
  /** What it is answered as, where it is known whose fault it is. */
  readonly code?: ErrorCode;
}

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

export const resultOfError = (error: unknown): CommandFailure =>
  failed(textOf(error), error instanceof CommandRefused ? error.code : undefined);
