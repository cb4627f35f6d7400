const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const space = 0x20;

/** How many keys are written in a text that is known to be JSON. Linear, and strings are passed over as fast as they can be searched. */
export function keysWritten(json: string): number {
  let keys = 0;
  for (let start = json.indexOf('"'); start !== -1;) {
    let after = endOf(json, start) + 1;
    // Between tokens only white space lies below or at the space's code.
    while (json.charCodeAt(after) <= space) after += 1;
    if (json.charCodeAt(after) === colon) keys += 1;
    start = json.charCodeAt(after) === quote ? after : json.indexOf('"', after);
  }
  return keys;
}

/** Where the string ends that starts there. */
function endOf(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (isEscaped(json, end)) end = json.indexOf('"', end + 1);
  return end;
}

/** After an odd number of backslashes. The quote that starts the string ends the search at the latest. */
function isEscaped(json: string, at: number): boolean {
  let before = at - 1;
  while (json.charCodeAt(before) === backslash) before -= 1;
  return (at - before) % 2 === 0;
}

/** How many keys all the objects within a parsed value have: fewer than were written where one was written twice. */
export function keysWithin(value: object): number {
  let keys = 0;
  // Not by recursion: what JSON.parse takes may be nested deeper than the stack is.
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
