import { test } from "vitest";

/** What a fault test found: a row of the table that `npm run prove:faults` prints. */
export interface Row {
  /** What callers saw while the fault lasted, in a few words. */
  saw: string;
  /** The time from when the fault was over, or should have been noticed, until all was well again. */
  recoveryMs?: number;
}

declare module "vitest" {
  interface TaskMeta {
    row?: Row;
  }
}

/** Says what was found. Where it is told more than once, the last row counts. */
export type Tell = (row: Row) => void;

/** Far from what a busy machine takes: what a fault test waits for says so itself, sooner. */
const defaultLimitMs = 300_000;

/**
 * A fault and what has to hold under it: an ordinary test that also tells a row. `limitMs` ends one that
 * hangs.
 */
export function fault(name: string, prove: (tell: Tell) => Promise<void>, limitMs = defaultLimitMs): void {
  test(name, { timeout: limitMs }, async ({ task }) => {
    await prove((row) => void (task.meta.row = row));
  });
}

/** A clock for recovery times: `since` gives the ms that have gone by. */
export function startWatch(): { since(): number } {
  const startedAt = performance.now();
  return { since: () => performance.now() - startedAt };
}
