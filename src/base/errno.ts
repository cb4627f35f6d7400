/**
 * The name the system or Node.js gives to what went wrong, such as `ENOENT`; undefined where there is none.
 */
export const errnoOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
