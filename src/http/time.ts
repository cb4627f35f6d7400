import { type Millis, timestampOf } from "../base/clock.js";

const rfc3339 = /^(\d{4}-\d\d-\d\d)[Tt ](?:[01]\d|2[0-3]):\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)$/;

/** The instant that a text of RFC 3339 names; its seconds may be left out. Undefined where it names none. */
export function findInstant(text: string): Millis | undefined {
  const [, day = ""] = rfc3339.exec(text) ?? [];
  const at = isOfCalendar(day) ? Date.parse(text.replace(" ", "T")) : NaN;
  return Number.isNaN(at) ? undefined : at;
}

/** `Date.parse` takes the 30th of February for the 2nd of March. */
function isOfCalendar(day: string): boolean {
  const at = Date.parse(day);
  return !Number.isNaN(at) && timestampOf(at).startsWith(day);
}
