const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openArray = 0x5b;
const backslash = 0x5c;
const closeArray = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

/** What reading a JSON text will cost, told before it is read. */
interface JsonShape {
  /** How many keys are written in it. */
  readonly keys: number;
  /** Objects, arrays and what stands in them, at least so many. */
  readonly values: number;
}

export interface JsonShapeLimits {
  readonly depth: number;
  readonly values: number;
}

/**
 * Measures a text that ought to be JSON in one pass over its bytes, without reading values or taking memory.
 * Stops where a limit is passed. In UTF-8 no byte of a longer character looks like one of ASCII.
 */
export function measure(json: Uint8Array, most: JsonShapeLimits): JsonShape | "too deep" | "too many" {
  let [depth, keys, values] = [0, 0, 0];
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === quote) at = endOfString(json, at);
    else if (byte === colon) keys += 1;
    else if (byte === comma) values += 1;
    else if (byte === closeObject || byte === closeArray) depth -= 1;
    else if (byte === openObject || byte === openArray) {
      depth += 1;
      values += 1;
    }
    if (depth > most.depth) return "too deep";
    if (values > most.values) return "too many";
  }
  return { keys, values };
}

/**
 * The offset at which the string ends that starts at `start`; the text's end where the string is not closed.
 */
function endOfString(json: Uint8Array, start: number): number {
  for (let at = start + 1; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === quote) return at;
    if (byte === backslash) at += 1;
  }
  return json.length;
}

/**
 * Counts the keys of all objects within a parsed value: fewer than were written where one was written twice.
 */
export function keysWithin(value: object): number {
  let keys = 0;
  const left: unknown[] = [value];
  const visit = (inner: unknown): void => {
    if (typeof inner === "object" && inner !== null) left.push(inner);
  };
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const inner: readonly unknown[] = Array.isArray(next) ? next : Object.values(next as object);
    if (!Array.isArray(next)) keys += inner.length;
    inner.forEach(visit);
  }
  return keys;
}
