import { setFlagsFromString } from "node:v8";

const heldBuffers = "--external-memory-accounted-in-global-limit";

/**
 * V8 marks all of its heap when buffers have grown by so much. Before 14.8 all count for that which were made
 * since the last time, also those that nobody has any more; with this flag those count that are held, as they
 * do from 14.8 on, where the flag is gone (V8 cf511a65ad). Node.js 24 has V8 13.6, Node.js 26 has 14.6.
 */
export function heldBuffersFlag(v8: string): string | undefined {
  const [major = 0, minor = 0] = v8.split(".").map(Number);
  const version = major + minor / 100;
  return version >= 13.06 && version < 14.08 ? heldBuffers : undefined;
}

/**
 * How much heap and buffers may grow before V8 marks again, in percent of the heap. Left to itself V8 allows
 * the less the longer marking takes and the less JavaScript allocates: 8 MiB of buffers in the end, so that
 * who has a pipe or socket read fast had it mark five times a second (DECISIONS 57). Where the limit is not
 * reached, collections of the young generation free the buffers that were read and passed on.
 */
export const growthFlag = "--heap-growing-percent=200";

/** Has to be called before much is done: V8 looks at the flags when it next sets its limits. */
export function setHeapLimits(): void {
  for (const flag of [growthFlag, heldBuffersFlag(process.versions.v8)])
    if (flag !== undefined) setFlagsFromString(flag);
}
