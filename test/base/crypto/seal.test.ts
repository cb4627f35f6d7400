import { expect, test } from "vitest";
import { Seal, type UnsealResult } from "../../../src/base/crypto/seal.js";
import { Secret } from "../../../src/base/crypto/secret.js";

const seal = new Seal(new Secret("a key of this suite"));
const textOf = (unsealed: UnsealResult): string =>
  unsealed.kind === "opened" ? unsealed.text.reveal() : unsealed.kind;

test.each(["", "p", "pässwörd 🐎", "x".repeat(100_000)])("what is sealed opens as it was", (text) => {
  const sealed = seal.close(text, "owner");
  expect(textOf(seal.open(sealed, "owner"))).toBe(text);
  expect(textOf(new Seal(new Secret("a key of this suite")).open(sealed, "owner"))).toBe(text);
});

test("nothing of the text or the key is in what is sealed, and no two are alike", () => {
  const sealed = Array.from({ length: 100 }, () => seal.close("hunter2hunter2", "owner"));
  expect(new Set(sealed).size).toBe(100);
  for (const text of sealed) {
    expect(text).toMatch(/^v1\.[0-9a-f]{8}\.[\w-]+$/);
    expect(Buffer.from(text.split(".")[2] ?? "", "base64url").toString("latin1")).not.toContain("hunter2");
  }
});

test("it opens for its owner only, and with its key only", () => {
  const sealed = seal.close("hunter2", "owner");
  expect(seal.open(sealed, "another")).toEqual({ kind: "damaged" });
  expect(new Seal(new Secret("another key of this suite")).open(sealed, "owner")).toEqual({
    kind: "wrong-key",
  });
});

test("whatever was changed in it is noticed", () => {
  const sealed = seal.close("hunter2", "owner");
  const [form = "", keyId = "", text = ""] = sealed.split(".");
  const bytes = Buffer.from(text, "base64url");
  for (const place of bytes.keys()) {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(place) ^ 1, place);
    expect(seal.open(`${form}.${keyId}.${changed.toString("base64url")}`, "owner")).toEqual({
      kind: "damaged",
    });
  }
  for (const other of [
    "",
    "v1",
    `v1.${keyId}`,
    `v1.${keyId}.`,
    `v1.${keyId}.AAAA`,
    `v2.${keyId}.${text}`,
    `${form}.${keyId}.${text.slice(0, -8)}`,
  ]) {
    expect(seal.open(other, "owner")).toEqual({ kind: "damaged" });
  }
});

test("what is opened does not print itself", () => {
  expect(JSON.stringify(seal.open(seal.close("hunter2", "owner"), "owner"))).not.toContain("hunter2");
});
