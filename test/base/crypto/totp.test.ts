import { expect, test } from "vitest";
import { decodeBase32, totpCodeOf, totpLeftMs } from "../../../src/base/crypto/totp.js";

/** The seed of RFC 6238, appendix B, for SHA-1. */
const seed = Buffer.from("12345678901234567890");

test.each([
  [59, "287082"],
  [1_111_111_109, "081804"],
  [1_111_111_111, "050471"],
  [1_234_567_890, "005924"],
  [2_000_000_000, "279037"],
  [20_000_000_000, "353130"],
])("at %i s the code is that of RFC 6238: %s", (seconds, code) => {
  expect(totpCodeOf(seed, seconds * 1000)).toBe(code);
});

test("a code lasts until its 30 s are over", () => {
  expect([0, 1, 29_999, 30_000, 59_500].map(totpLeftMs)).toEqual([30_000, 29_999, 1, 30_000, 500]);
  expect(totpCodeOf(seed, 29_999)).toBe(totpCodeOf(seed, 0));
  expect(totpCodeOf(seed, 30_000)).not.toBe(totpCodeOf(seed, 29_999));
});

test.each([
  ["MY======", "f"],
  ["MZXQ====", "fo"],
  ["MZXW6===", "foo"],
  ["MZXW6YQ=", "foob"],
  ["MZXW6YTB", "fooba"],
  ["MZXW6YTBOI======", "foobar"],
])("%s is read as RFC 4648 has it, padded or not and in either case", (text, meant) => {
  for (const given of [text, text.replace(/=+$/, ""), text.toLowerCase()])
    expect(decodeBase32(given)?.toString()).toBe(meant);
});

test.each([
  ["nothing", ""],
  ["padding alone", "========"],
  ["a length that no bytes have", "M"],
  ["another one", "MZX"],
  ["padding of another length", "MY="],
  ["too much padding", "MY=============="],
  ["padding within", "MY==MY=="],
  ["a blank", "MZXW 6YTB"],
  ["a hyphen", "MZXW-6YTB"],
  ["digits that are none", "MZXW6Y18"],
  ["bits of no byte", "MZ"],
  ["a letter that only folds into one", "MZXW6YTſ"],
  ["an address of a seed", "otpauth://totp/a?secret=MZXW6YTB"],
])("%s is no seed", (_, text) => {
  expect(decodeBase32(text)).toBeUndefined();
});
