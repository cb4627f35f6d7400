import type { ErrorCode } from "../base/errors.js";

/** What became of a question to this node, for whoever asked. */
export type Outcome = { readonly isDone: true } | { readonly isDone: false; readonly text?: string; readonly code?: ErrorCode };

export const done: Outcome = { isDone: true };
/** `text`: why, for people; nothing has changed. `code`: what it is answered as, where it is known whose fault it is. */
export const failed = (text?: string, code?: ErrorCode): Outcome => ({ isDone: false, ...(text !== undefined && { text }), ...(code && { code }) });
