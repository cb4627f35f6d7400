import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { hmacOf } from "../../../src/base/crypto/hmac.js";
import { Secret } from "../../../src/base/crypto/secret.js";

test("it is the HMAC-SHA256 that Node.js makes, of secrets and texts of every length", () => {
  for (const length of [0, 1, 31, 32, 63, 64, 65, 200]) {
    const key = "ключ".repeat(50).slice(0, length);
    const secret = new Secret(key);
    for (const text of [
      "",
      "a",
      "ab.cd",
      "x".repeat(127),
      "y".repeat(128),
      "z".repeat(129),
      "long".repeat(100),
      "b",
    ])
      expect(hmacOf(secret, text)).toBe(createHmac("sha256", key).update(text).digest("base64url"));
  }
});

// RFC 4231, test case 2.
test("it is the one of the standard", () => {
  const made = Buffer.from(hmacOf(new Secret("Jefe"), "what do ya want for nothing?"), "base64url");
  expect(made.toString("hex")).toBe("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
});
