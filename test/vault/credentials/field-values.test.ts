import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { decodeBase32 } from "../../../src/base/crypto/totp.js";
import { parsePasskey, valueFault } from "../../../src/vault/credentials/field-values.js";

test.each([
  ["an address", "me@shop.example", true],
  ["one of a host without a dot", "me@localhost", true],
  ["one with a name before it", "Me <me@shop.example>", false],
  ["two of them", "a@b.example,c@d.example", false],
  ["nothing before the at sign", "@shop.example", false],
  ["an address of 255 characters", `${"a".repeat(242)}@shop.example`, false],
])("an email field takes %s: %s is %s", (_, value, isTaken) => {
  expect(valueFault("email", value) === undefined).toBe(isTaken);
});

test.each([
  ["in upper case", "JBSWY3DPEHPK3PXP", "48656c6c6f21deadbeef"],
  ["in lower case", "jbswy3dpehpk3pxp", "48656c6c6f21deadbeef"],
  ["without its padding", "MZXW6YQ", "666f6f62"],
  ["with its padding", "MZXW6YQ=", "666f6f62"],
  ["with less padding than is due", "MZXW6===", "666f6f"],
])("a seed %s opens", (_, seed, bytes) => {
  expect(decodeBase32(seed)?.toString("hex")).toBe(bytes);
});

test.each([
  ["empty", ""],
  ["a code", "123456"],
  ["a URI", "otpauth://totp/x?secret=JBSWY3DPEHPK3PXP"],
  ["with spaces", "JBSW Y3DP"],
  ["with hyphens", "JBSW-Y3DP"],
  ["of an impossible length", "JBSWY3DPE"],
  ["with bits over that are not zero", "MZXW6YR"],
  ["with padding that is too long", "MZXW6YQ=="],
])("no seed is %s", (_, seed) => {
  expect(decodeBase32(seed)).toBeUndefined();
  expect(valueFault("totp", seed)).toMatch(/^must /);
});

test("a value has at most 16384 bytes, whatever its characters", () => {
  expect(valueFault("text", "é".repeat(8192))).toBeUndefined();
  expect(valueFault("text", `${"é".repeat(8192)}a`)).toBe("must have at most 16384 bytes");
});

const keyOf = (kind: "ec" | "ed25519", namedCurve = "P-256"): string =>
  (kind === "ec" ? generateKeyPairSync("ec", { namedCurve }) : generateKeyPairSync("ed25519")).privateKey
    .export({ format: "der", type: "pkcs8" })
    .toString("base64url");
const sound = {
  type: "passkey",
  credentialId: "Y3JlZA",
  rpId: "shop.example",
  username: "me",
  userDisplayName: "Me",
  userHandle: "aGFuZGxl",
  key: keyOf("ec"),
};

test("a passkey is read as the Credential Exchange Format has it; its counter begins at 0", () => {
  expect(parsePasskey(JSON.stringify({ ...sound, other: 1 }))).toMatchObject({
    rpId: "shop.example",
    userName: "me",
    signCount: 0,
  });
  expect(parsePasskey(JSON.stringify({ ...sound, signCount: 7 }))?.signCount).toBe(7);
});

test.each([
  ["no JSON", "{"],
  ["another type", JSON.stringify({ ...sound, type: "totp" })],
  ["no credential id", JSON.stringify({ ...sound, credentialId: undefined })],
  ["no domain", JSON.stringify({ ...sound, rpId: "https://shop.example" })],
  ["a handle of 65 bytes", JSON.stringify({ ...sound, userHandle: "A".repeat(87) })],
  ["padding", JSON.stringify({ ...sound, credentialId: "Y3JlZA==" })],
  ["a negative counter", JSON.stringify({ ...sound, signCount: -1 })],
  ["a key of another curve", JSON.stringify({ ...sound, key: keyOf("ec", "P-384") })],
  ["a key of another algorithm", JSON.stringify({ ...sound, key: keyOf("ed25519") })],
  ["a key that is none", JSON.stringify({ ...sound, key: "AAAA" })],
])("no passkey has %s", (_, text) => {
  expect(parsePasskey(text)).toBeUndefined();
});

test.each(["co.uk", "github.io", "example"])("a passkey of all sites of %s is none", (rpId) => {
  expect(valueFault("passkey", JSON.stringify({ ...sound, rpId }))).toMatch(/must be/);
});
test.each(["shop.co.uk", "me.github.io", "login.shop.example", "localhost"])(
  "a passkey of %s is one",
  (rpId) => {
    expect(valueFault("passkey", JSON.stringify({ ...sound, rpId }))).toBeUndefined();
  },
);
