import { isRecord } from "../../base/is-record.js";
import { bytesOf, type Frame, frameHeadOf, frameTailOf, wholeOf } from "../../browser/cdp/frame.js";
import { codes } from "./command.js";
import { findTarget, type TargetInfo } from "../../browser/cdp/target-event.js";

const idStart = '{"id":'.length;
const comma = 0x2c;
const close = Buffer.from("}");

/**
 * Replaces the beginning of a message; of one in parts only the first part is copied. The given frame is not
 * changed, because other listeners have it too.
 */
const begun = (frame: Frame, head: string, from: number): Frame =>
  Buffer.isBuffer(frame)
    ? Buffer.concat([Buffer.from(head, "latin1"), frame.subarray(from)])
    : [Buffer.from(head, "latin1"), frameHeadOf(frame).subarray(from), ...frame.slice(1)];

/** Replaces the end of a message in the same way. */
const ended = (frame: Frame, without: number): Frame => {
  const kept = frameTailOf(frame).subarray(0, frameTailOf(frame).length - without);
  return Buffer.isBuffer(frame) ? Buffer.concat([kept, close]) : [...frame.slice(0, -1), kept, close];
};

/** The same reply under another id. The body is not parsed. */
export const withId = (frame: Frame, id: number): Frame =>
  begun(frame, `{"id":${id}`, frameHeadOf(frame).indexOf(comma, idStart));

/** The same message without the `sessionId` at its tail, as a client's root session shows it. */
export const withoutSession = (frame: Frame, session: string): Frame => ended(frame, tailBytes(session));

/** Replaces the beginning and the end with one copy. */
export function rootReply(frame: Frame, id: number, session: string): Frame {
  if (!Buffer.isBuffer(frame)) return withoutSession(withId(frame, id), session);
  const head = Buffer.from(`{"id":${id}`, "latin1");
  return Buffer.concat([
    head,
    frame.subarray(frame.indexOf(comma, idStart), frame.length - tailBytes(session)),
    close,
  ]);
}

/** Whether a reply has a result, and no error. */
export const isResult = (frame: Frame): boolean => /^\{"id":\d+,"result":/.test(head(frame));

const tailBytes = (session: string): number => `,"sessionId":"${session}"}`.length;

const headBytes = 256;
const attached = /^\{"method":"Target\.attachedToTarget","params":\{"sessionId":"([^"]+)","targetInfo":/;
const detached = /^\{"method":"Target\.detachedFromTarget","params":\{"sessionId":"([^"]+)"/;
const crashed = /^\{"method":"Target\.targetCrashed","params":\{"targetId":"([^"]+)"/;
const destroyed = /^\{"method":"Target\.targetDestroyed","params":\{"targetId":"([^"]+)"/;

const head = (frame: Frame): string => frameHeadOf(frame).toString("latin1", 0, headBytes);

/** Chromium's answer to a command of the gateway itself. */
export interface BridgeReply {
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

/**
 * What is read of Chromium's answers to the gateway itself, where a page can put megabytes into its address;
 * 10 ms of parsing.
 */
const longestReadBytes = 2 * 1024 * 1024;

export function readReply(frame: Frame): BridgeReply {
  if (bytesOf(frame) > longestReadBytes)
    return refused(`The answer is longer than ${longestReadBytes} bytes`);
  const reply: unknown = JSON.parse(wholeOf(frame).toString());
  if (!isRecord(reply)) return refused("The answer is no object");
  const { result, error } = reply;
  if (error !== undefined) return refused(isRecord(error) ? String(error["message"]) : "refused");
  return isRecord(result) ? { result } : {};
}

const refused = (message: string): BridgeReply => ({ error: { code: codes.refused, message } });

/** Child session and target of a `Target.attachedToTarget`. */
export function findAttached(
  frame: Frame,
): { readonly session: string; readonly target: TargetInfo | undefined } | undefined {
  const session = attached.exec(head(frame))?.[1];
  return session === undefined ? undefined : { session, target: findTarget(frame) };
}

export const findDetachedSession = (frame: Frame): string | undefined => detached.exec(head(frame))?.[1];
export const findCrashedTarget = (frame: Frame): string | undefined => crashed.exec(head(frame))?.[1];
export const findDestroyedTarget = (frame: Frame): string | undefined => destroyed.exec(head(frame))?.[1];

const screencastTail = /,"sessionId":(\d{1,10})\},"sessionId":"[0-9A-Za-z-]{1,40}"\}$/;
const screencastTailBytes = 128;

/** The number of the screencast to which a `Page.screencastFrame` belongs; its data is never parsed. */
export function findScreencast(frame: Frame): number | undefined {
  const tail = frameTailOf(frame);
  const text = tail.toString("latin1", Math.max(0, tail.length - screencastTailBytes));
  const [, number] = screencastTail.exec(text) ?? [];
  return number === undefined ? undefined : Number(number);
}
