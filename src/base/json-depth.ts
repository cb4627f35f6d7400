/** Chromium reads JSON of its files to this depth (Chromium 156, docs/chromium.md#extensions). */
export const mostJsonDepth = 199;

/**
 * Whether a parsed value is nested deeper than Chromium reads, or than `JSON.stringify` writes without
 * running out of stack.
 */
export const isTooDeep = (value: unknown, left = mostJsonDepth): boolean =>
  typeof value === "object" &&
  value !== null &&
  (left === 0 || Object.values(value).some((inner) => isTooDeep(inner, left - 1)));
