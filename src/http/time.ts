import type { Millis } from "../base/clock.js";

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)$/;

/** The instant that a text of RFC 3339 names; its seconds may be left out. Undefined where it names none. */
export function findInstant(text: string): Millis | undefined {
  const at = rfc3339.test(text) ? Date.parse(text.replace(" ", "T")) : NaN;
  return Number.isNaN(at) ? undefined : at;
}
