/** Chromium reads JSON to this depth (`kAbsoluteMaxDepth` of base/json/json_common.h). */
export const mostJsonDepth = 200;

/**
 * Whether a parsed value is nested deeper than Chromium reads, or than `JSON.stringify` writes without
 * running out of stack.
 */
export const isTooDeep = (value: unknown, left = mostJsonDepth): boolean =>
  typeof value === "object" &&
  value !== null &&
  (left === 0 || Object.values(value).some((inner) => isTooDeep(inner, left - 1)));
