/**
 * What code that reports needs of a logger: fields first, one fixed message in the past tense. pino satisfies
 * it.
 */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Log;
}

/** The text of anything thrown, for a log field. */
export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
