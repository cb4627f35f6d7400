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
const attached = /^\{"method":"Target\.attachedToTarget","params":\{"sessionId":"([^"]+)","targetInfo":\{"targetId":"([^"]+)"/;
const detached = /^\{"method":"Target\.detachedFromTarget","params":\{"sessionId":"([^"]+)"/;
const crashed = /^\{"method":"Target\.targetCrashed","params":\{"targetId":"([^"]+)"/;
const destroyed = /^\{"method":"Target\.targetDestroyed","params":\{"targetId":"([^"]+)"/;

const head = (frame: Buffer): string => frame.toString("latin1", 0, headBytes);

/** Child session and target of a `Target.attachedToTarget`, read at its head (order seen in Chromium 156). */
export function findAttached(frame: Buffer): { readonly session: string; readonly target: string } | undefined {
  const [, session, target] = attached.exec(head(frame)) ?? [];
  return session === undefined || target === undefined ? undefined : { session, target };
}

export const findDetachedSession = (frame: Buffer): string | undefined => detached.exec(head(frame))?.[1];
export const findCrashedTarget = (frame: Buffer): string | undefined => crashed.exec(head(frame))?.[1];
export const findDestroyedTarget = (frame: Buffer): string | undefined => destroyed.exec(head(frame))?.[1];
