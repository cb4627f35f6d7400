/**
 * The name the system or Node.js gives to what went wrong, such as `ENOENT`; undefined where there is none.
 */
export const errnoOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;

/**
 * What a machine lacks (errno(3)), whatever was asked: whoever comes again may find it mended, or another
 * daemon.
 */
const exhausted: ReadonlySet<string | undefined> = new Set([
  "ENOSPC",
  "EDQUOT",
  "EROFS",
  "EIO",
  "EMFILE",
  "ENFILE",
  "ENOMEM",
  "ESTALE",
]);
export const isExhausted = (error: unknown): boolean => exhausted.has(errnoOf(error));
