import type { Duplex } from "node:stream";
import type { Millis } from "../base/clock.js";
import { repliesOn } from "../base/net/open-replies.js";
import type { FormEnd, OpenForm, Submitted } from "../vault/collection-form.js";

/** What the page is told: which of its states it is to show, and what stands there. */
export interface FormAnswer {
  readonly status: number;
  readonly retryAfterMs?: Millis;
  readonly body: { readonly state: string; readonly [field: string]: unknown };
}

/** A link that nobody knows looks like one whose item is gone. */
const endStatus = { gone: 404, expired: 410, replaced: 409, used: 410 } as const;
const endOf = ({ kind }: FormEnd): FormAnswer => ({ status: endStatus[kind], body: { state: kind } });

/** What somebody wrote as a heading may be 16 KiB; characters beyond these are cut. */
const mostTitle = 500;
const cut = (text: string): string => {
  const characters = [...text];
  return characters.length > mostTitle ? `${characters.slice(0, mostTitle - 1).join("")}…` : text;
};

export function openedAnswer(opened: OpenForm | FormEnd, now: Millis): FormAnswer {
  if (opened.kind !== "form") return endOf(opened);
  const { title, vaultName, fields, version, encryptionKey, expiresAt } = opened;
  const body = {
    state: "form",
    title: cut(title),
    vault: vaultName,
    version,
    encryption_key: encryptionKey,
    expires_in_ms: Math.max(0, expiresAt - now),
    fields: fields.map(({ hasValue, ...field }) => ({ ...field, has_value: hasValue })),
  };
  return { status: 200, body };
}

export function submittedAnswer(submitted: Submitted): FormAnswer {
  switch (submitted.kind) {
    case "done":
      return { status: 200, body: { state: "done" } };
    case "invalid":
      return { status: 400, body: { state: "invalid", fields: submitted.fields } };
    default:
      return endOf(submitted);
  }
}

export const limitedAnswer = (retryAfterMs: Millis): FormAnswer => ({
  status: 429,
  retryAfterMs,
  body: { state: "limited" },
});

export const invalidAnswer: FormAnswer = { status: 400, body: { state: "invalid", fields: [] } };
export const tooLargeAnswer: FormAnswer = { status: 413, body: { state: "invalid", fields: [] } };
export const unknownAnswer: FormAnswer = { status: 404, body: { state: "unknown" } };
export const misdirectedAnswer: FormAnswer = { status: 421, body: { state: "misdirected" } };
/** The page shows the same as where nothing was answered at all. */
export const unavailableAnswer: FormAnswer = {
  status: 503,
  retryAfterMs: 1000,
  body: { state: "unavailable" },
};

/**
 * Answers what the parser could not read, or did not get in time, and closes the connection. Where an answer
 * is still to come there, this would be taken for it: a submission would look refused that is being saved.
 */
export function answerMalformed(
  { code }: NodeJS.ErrnoException,
  socket: Duplex,
  headers: Readonly<Record<string, string>>,
): void {
  const isAmidAnswers = repliesOn(socket).some(({ req, headersSent }) => req.complete || headersSent);
  if (code === "ECONNRESET" || !socket.writable || isAmidAnswers) return void socket.destroy();
  const body = JSON.stringify(invalidAnswer.body);
  const lines = Object.entries({
    ...headers,
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  // Whoever goes on sending must not keep the connection.
  socket.once("finish", () => socket.destroy());
  socket.end(`HTTP/1.1 400 Bad Request\r\n${lines.join("")}\r\n${body}`);
}
