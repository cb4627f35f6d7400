import { expect, test } from "vitest";
import { makeKeyCheck } from "../../../src/base/crypto/key-check.js";
import { Secret } from "../../../src/base/crypto/secret.js";

const keys = [
  "k",
  "rk_usual-key",
  "ключ",
  "€".repeat(256),
  "x".repeat(256),
  "x".repeat(257),
  "€".repeat(300),
];

test("a key is its own, and no other's, however long either is", () => {
  for (const key of keys) {
    const isKey = makeKeyCheck(new Secret(key));
    for (const shown of keys) expect([shown, isKey(shown)]).toEqual([shown, shown === key]);
  }
});

test("what goes on, breaks off or ends in zeros is another key", () => {
  for (const key of keys) {
    const isKey = makeKeyCheck(new Secret(key));
    for (const shown of [`${key}x`, `${key}\0`, `\0${key}`, key.slice(0, -1), "", ` ${key}`])
      expect([shown, isKey(shown)]).toEqual([shown, false]);
    expect(isKey(key)).toBe(true);
  }
});
