import { expect, test } from "vitest";
import { Secret } from "../../src/base/crypto/secret.js";
import { isSigned, sign } from "../../src/base/crypto/signature.js";

const secret = new Secret("the cluster secret of this test");
const now = 1_700_000_000_000;

test("a text is what was signed, by whoever has the secret, a minute ago at most", () => {
  const signature = sign(secret, "text", now);
  expect(isSigned(secret, { text: "text", signature }, now + 59_000)).toBe(true);
  expect(isSigned(secret, { text: "text", signature }, now - 59_000)).toBe(true);
  expect(isSigned(secret, { text: "text", signature }, now + 61_000)).toBe(false);
  expect(isSigned(secret, { text: "other", signature }, now)).toBe(false);
  expect(isSigned(new Secret("another secret"), { text: "text", signature }, now)).toBe(false);
  expect(isSigned(secret, { text: "text", signature: signature.replace(/^\d/, "2") }, now)).toBe(false);
});

test.each(["", ".", "1", "x.y", `${now}.`, `${now}.AAAA`, "99999999999999999999.AAAA"])(
  "%j signs nothing",
  (signature) => {
    expect(isSigned(secret, { text: "text", signature }, now)).toBe(false);
  },
);
