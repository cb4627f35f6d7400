import { expect, test } from "vitest";
import { Secret } from "../../../src/base/crypto/secret.js";
import { isRecent, sign, signedAt } from "../../../src/base/crypto/signature.js";

const secret = new Secret("the cluster secret of this test");
const now = 1_700_000_000_000;

const by = (text: string, signature: string, other = secret) => signedAt(other, { text, signature });

test("a text is what was signed, by whoever has the secret, at the instant that is told", () => {
  const signature = sign(secret, "text", now);
  expect(by("text", signature)).toBe(now);
  expect(by("other", signature)).toBeUndefined();
  expect(by("text", signature, new Secret("another secret"))).toBeUndefined();
  expect(by("text", signature.replace(/^\d/, "2"))).toBeUndefined();
});

test("what was said a minute ago at most, by either clock, is recent", () => {
  for (const ms of [-59_000, 0, 59_000]) expect(isRecent(now, now + ms)).toBe(true);
  for (const ms of [-61_000, 61_000]) expect(isRecent(now, now + ms)).toBe(false);
});

test.each(["", ".", "1", "x.y", `${now}.`, `${now}.AAAA`, "99999999999999999999.AAAA"])(
  "%j signs nothing",
  (signature) => {
    expect(by("text", signature)).toBeUndefined();
  },
);
