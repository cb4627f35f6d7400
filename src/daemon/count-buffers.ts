import { setFlagsFromString } from "node:v8";

const flag = "--external-memory-accounted-in-global-limit";

/**
 * V8 marks all of its heap when buffers have grown by so much. Before 14.8 all count for that which were made
 * since the last time, also those that nobody has any more; with this flag those count that are held, as they
 * do from 14.8 on, where the flag is gone (V8 cf511a65ad). Node.js 24 has V8 13.6, Node.js 26 has 14.6.
 */
export function heldBuffersFlag(v8: string): string | undefined {
  const [major = 0, minor = 0] = v8.split(".").map(Number);
  const version = major + minor / 100;
  return version >= 13.06 && version < 14.08 ? flag : undefined;
}

/** Has to be called before much is done: V8 looks at the flag when it next sets its limits. */
export function countHeldBuffers(): void {
  const known = heldBuffersFlag(process.versions.v8);
  if (known !== undefined) setFlagsFromString(known);
}
