import { expect, test } from "vitest";
import { makeKeyText, newKeySalt } from "../../src/base/crypto/key-text.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { childOf, findTrace, parseTrace, traceText } from "../../src/base/trace-context.js";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";
const parent = `00-${traceId}-${spanId}-01`;

test("the four fields of a traceparent are read, and whether it is sampled", () => {
  expect(findTrace({ traceparent: parent })).toEqual({ traceId, spanId, isSampled: true });
  const flagged = (flags: string) =>
    findTrace({ traceparent: `00-${traceId}-${spanId}-${flags}` })?.isSampled;
  expect(["00", "01", "02", "03", "ff"].map(flagged)).toEqual([false, true, false, true, true]);
});

test("a later version may go on behind its flags; the first one may not", () => {
  const later = [`01-${traceId}-${spanId}-01`, `cc-${traceId}-${spanId}-01-what-is-new`];
  for (const traceparent of later) expect(findTrace({ traceparent })).toMatchObject({ traceId, spanId });
});

test.each([
  undefined,
  "",
  ["of", "several"],
  "00",
  `ff-${traceId}-${spanId}-01`,
  `0-${traceId}-${spanId}-01`,
  `00-${traceId.toUpperCase()}-${spanId}-01`,
  `00-${"0".repeat(32)}-${spanId}-01`,
  `00-${traceId}-${"0".repeat(16)}-01`,
  `00-${traceId}-${spanId}-1`,
  `00-${traceId}-${spanId}-0g`,
  `00-${traceId}-${spanId}`,
  `00-${traceId}-${spanId}-01-more`,
  `00-${traceId}-${spanId}-01.`,
  `cc-${traceId}-${spanId}-01more`,
  ` ${parent}`,
  `${parent}\n`,
  // What Node.js makes of a header that was sent twice.
  `${parent}, ${parent}`,
  `cc-${traceId}-${spanId}-01-${"x".repeat(300)}`,
])("what breaks the rules is none: %j", (traceparent) => {
  expect(findTrace({ traceparent })).toBeUndefined();
});

const stateOf = (tracestate: unknown) => findTrace({ traceparent: parent, tracestate })?.state;

test("a tracestate goes on as it came, but for the space around its members", () => {
  expect(stateOf("rojo=00f067aa0ba902b7, congo=t61rcWkgMzE")).toBe("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
  expect(stateOf("fw529a3039@dt=FfAAA;1, ,a/b*c_d-e=x y")).toBe("fw529a3039@dt=FfAAA;1,a/b*c_d-e=x y");
});

test("one that is malformed, has an API key in it or is longer than is kept is left out, and its traceparent counts", () => {
  const long = Array.from({ length: 40 }, (_, at) => `key${at}=${"v".repeat(12)}`);
  const wrong = [
    "",
    "novalue",
    "a=1,a=2",
    "a=",
    "A=b",
    "a=b=c",
    "a=\u00fc",
    "a=b\n",
    long.join(","),
    "x".repeat(600),
    ["a=b"],
    `rojo=1,key=${makeKeyText(new Secret("s"), newKeySalt()).reveal()}`,
  ];
  for (const tracestate of wrong) expect(stateOf(tracestate)).toBeUndefined();
  expect(findTrace({ traceparent: parent, tracestate: "novalue" })).toMatchObject({ traceId });
});

test("a child has its parent's trace and state, and an id of its own; a record's text is read again", () => {
  for (const tracestate of [undefined, "rojo=1,congo=2 3"]) {
    const found = findTrace({ traceparent: parent, tracestate });
    const child = found && childOf(found);
    expect(child).toEqual({ ...found, spanId: expect.stringMatching(/^[0-9a-f]{16}$/) });
    expect(child?.spanId).not.toBe(spanId);
    expect(child && parseTrace(traceText(child))).toEqual(child);
  }
  expect(parseTrace(undefined)).toBeUndefined();
  expect(parseTrace("nonsense of a record")).toBeUndefined();
});
