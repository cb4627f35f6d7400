import { inject } from "vitest";

/**
 * The directory of the sources as JavaScript, for tests that need them in another process; any user can read
 * it. Nothing is to be written there: all files of a run share it (compile.ts).
 */
export const compiled: string = inject("compiled");
