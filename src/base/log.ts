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

/** A URL as it may be logged: without credentials, query and fragment. */
export function loggableUrl(text: string): string {
  try {
    const url = new URL(text);
    return `${url.protocol}//${url.host}${url.pathname}`;
  } catch {
    return "[unparsable url]";
  }
}

/** The text of anything thrown, for a log field. */
export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
