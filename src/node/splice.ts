import { codes } from "./command.js";
import type { TargetInfo } from "./last-page.js";

const idStart = '{"id":'.length;
const comma = 0x2c;
const close = Buffer.from("}");

/** The same reply under another id. The body is copied, not parsed; the given buffer is left as it is for other listeners. */
export function withId(frame: Buffer, id: number): Buffer {
  return Buffer.concat([Buffer.from(`{"id":${id}`, "latin1"), frame.subarray(frame.indexOf(comma, idStart))]);
}

/** The same message without the `sessionId` at its tail, as a client's root session shows it. */
export function withoutSession(frame: Buffer, session: string): Buffer {
  return Buffer.concat([frame.subarray(0, frame.length - tailBytes(session)), close]);
}

/** Both at once: one copy. */
export function rootReply(frame: Buffer, id: number, session: string): Buffer {
  const head = Buffer.from(`{"id":${id}`, "latin1");
  return Buffer.concat([head, frame.subarray(frame.indexOf(comma, idStart), frame.length - tailBytes(session)), close]);
}

const tailBytes = (session: string): number => `,"sessionId":"${session}"}`.length;

const headBytes = 256;
const attached = /^\{"method":"Target\.attachedToTarget","params":\{"sessionId":"([^"]+)","targetInfo":/;
const detached = /^\{"method":"Target\.detachedFromTarget","params":\{"sessionId":"([^"]+)"/;
const crashed = /^\{"method":"Target\.targetCrashed","params":\{"targetId":"([^"]+)"/;
const destroyed = /^\{"method":"Target\.targetDestroyed","params":\{"targetId":"([^"]+)"/;

const head = (frame: Buffer): string => frame.toString("latin1", 0, headBytes);

export interface Faulty {
  readonly error?: { readonly code: number; readonly message: string };
}

/** What is read of Chromium's answers and events here, where a page can put megabytes into its address; 10 ms of parsing. */
const longestReadBytes = 2 * 1024 * 1024;

export function readReply<Reply extends Faulty>(frame: Buffer): Reply | Faulty {
  if (frame.length <= longestReadBytes) return JSON.parse(frame.toString()) as Reply;
  return { error: { code: codes.refused, message: `The answer is longer than ${longestReadBytes} bytes` } };
}

interface OfTarget {
  readonly params: { readonly sessionId: string; readonly targetInfo: TargetInfo };
}

const told = /"targetInfo":\{"targetId":"([^"]+)","type":"([^"]+)"/;
/** Within a text its quotation marks would be escaped, so the first is the target's own, whatever its title says. */
const urlKey = Buffer.from(',"url":"');
const urlHeadBytes = 4096;

/** What an event says of its target; of one that is too long, what tells whose page it is (order seen in Chromium 156). */
export function findTarget(frame: Buffer): TargetInfo | undefined {
  if (frame.length <= longestReadBytes) return (JSON.parse(frame.toString()) as OfTarget).params.targetInfo;
  const [, targetId, type] = told.exec(head(frame)) ?? [];
  if (targetId === undefined || type === undefined) return undefined;
  return { targetId, type, title: "", url: urlHead(frame) };
}

/** An address that is not found counts as one of the browser's own. */
function urlHead(frame: Buffer): string {
  const at = frame.indexOf(urlKey);
  if (at < 0) return "chrome://unknown/";
  const from = at + urlKey.length;
  return frame.toString("utf8", from, from + urlHeadBytes).split('"', 1)[0] ?? "";
}

/** Child session and target of a `Target.attachedToTarget`. */
export function findAttached(frame: Buffer): { readonly session: string; readonly target: TargetInfo | undefined } | undefined {
  const session = attached.exec(head(frame))?.[1];
  return session === undefined ? undefined : { session, target: findTarget(frame) };
}

export const findDetachedSession = (frame: Buffer): string | undefined => detached.exec(head(frame))?.[1];
export const findCrashedTarget = (frame: Buffer): string | undefined => crashed.exec(head(frame))?.[1];
export const findDestroyedTarget = (frame: Buffer): string | undefined => destroyed.exec(head(frame))?.[1];
