import type { ErrorCode } from "../../base/errors.js";
import { textOf } from "../../base/log.js";

/** What became of a question to this node, for whoever asked. */
export type Outcome = { readonly isDone: true } | Failed;

export interface Failed {
  readonly isDone: false;
  /** Why, for people; nothing has changed. */
  readonly text?: string;
  /** What it is answered as, where it is known whose fault it is. */
  readonly code?: ErrorCode;
}

export const done: Outcome = { isDone: true };
export const failed = (text?: string, code?: ErrorCode): Failed => ({ isDone: false, ...(text !== undefined && { text }), ...(code && { code }) });

/** Thrown on the way to an answer of this code. */
export class Refused extends Error {
  constructor(readonly code: ErrorCode, text: string) {
    super(text);
    this.name = "Refused";
  }
}

export const failedBy = (error: unknown): Failed => failed(textOf(error), error instanceof Refused ? error.code : undefined);
