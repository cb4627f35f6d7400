import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import {
  isKeyText,
  keyDigestOf,
  keyPattern,
  makeKeyText,
  maskOf,
  newKeySalt,
  withoutKeys,
} from "../../../src/base/crypto/key-text.js";
import { tokenOf } from "../../../src/base/crypto/lease-token.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { newLeaseId } from "../../../src/base/ids.js";
import type { BrowserId } from "../../../src/base/ids.js";

const secret = new Secret("the secret of a deployment");
const draw = (): string => makeKeyText(secret, newKeySalt()).reveal();

test("a key has its form, no dot, and a checksum that is right", () => {
  for (let count = 0; count < 200; count += 1) {
    const text = draw();
    expect(text).toMatch(new RegExp(`^${keyPattern}$`));
    expect(text).toMatch(/^rmd_[0-9A-Za-z]{49}$/);
    expect(isKeyText(text)).toBe(true);
  }
});

test("a wrong, missing or added character is told without a look-up", () => {
  const text = draw();
  for (let at = 0; at < text.length; at += 1) {
    const other = text[at] === "a" ? "b" : "a";
    expect(isKeyText(text.slice(0, at) + other + text.slice(at + 1)), `character ${at}`).toBe(false);
    expect(isKeyText(text.slice(0, at) + text.slice(at + 1)), `without character ${at}`).toBe(false);
  }
  for (const garbage of ["", "rmd_", `${text} `, `${text}\n`, ` ${text}`, text.toUpperCase(), `${text}a`])
    expect(isKeyText(garbage), JSON.stringify(garbage)).toBe(false);
});

test("a salt gives the same key again, under the same secret only", () => {
  const salt = newKeySalt();
  expect(makeKeyText(secret, salt).reveal()).toBe(makeKeyText(secret, salt).reveal());
  expect(makeKeyText(new Secret("another secret"), salt).reveal()).not.toBe(
    makeKeyText(secret, salt).reveal(),
  );
  expect(new Set(Array.from({ length: 100 }, draw)).size).toBe(100);
});

test("keys are masked wherever they stand in a text, root keys that a daemon has drawn too", () => {
  const [text, root] = [draw(), `rk_${randomBytes(32).toString("base64url")}`];
  expect(withoutKeys(`/browsers/${root}/x ${text}?${root}`)).toBe(
    `/browsers/rk_...${root.slice(-4)}/x ${maskOf(text)}?rk_...${root.slice(-4)}`,
  );
  for (const name of [`work_${"a".repeat(43)}`, `rk_${"a".repeat(44)}`, "rk_short"])
    expect(withoutKeys(name)).toBe(name);
});

test("keys and tokens are masked however they are percent-encoded, and whatever is encoded beside them", () => {
  const encodeAll = (text: string): string => text.replaceAll(/./g, (one) => `%${hexOf(one)}`);
  const token = `eyJhbGciOiJSUzI1NiJ9.${"p".repeat(50)}.${"s".repeat(86)}`;
  for (const key of [draw(), `rk_${randomBytes(32).toString("base64url")}`, token]) {
    const masked = maskOf(key);
    const spelt = [encodeAll(key), encodeAll(key).toLowerCase(), encodeAll(key).replaceAll("%", "%2525")];
    for (const one of [...spelt, `%${hexOf(key[0] ?? "")}${key.slice(1)}`, key])
      expect(withoutKeys(`/browsers/%2F${one}/x`)).toBe(`/browsers/%2F${masked}/x`);
  }
  for (const path of [
    "/browsers/%41%2f%61",
    "/%40%60%5b%7b%3a%2f%25",
    "/%25%72md_",
    "/%",
    "/%7",
    "/%ff%C3%A4",
  ])
    expect(withoutKeys(path)).toBe(path);
  for (const long of ["%25", "%", "a", "%4"].map((part) => part.repeat(100_000)))
    expect(withoutKeys(long)).toBe(long);
});
const hexOf = (letter: string): string => letter.charCodeAt(0).toString(16).toUpperCase();

test("a key is masked also where it is encoded many times over, or stands beside its like in another spelling", () => {
  const encodeAll = (text: string): string => text.replaceAll(/./g, (one) => `%${hexOf(one)}`);
  const [key, root] = [draw(), `rk_${randomBytes(32).toString("base64url")}`];
  const token = tokenOf(secret, "a".repeat(24) as BrowserId, newLeaseId());
  const deep = `%${"25".repeat(9)}3D`;
  for (const one of [key, root, token]) {
    const masked = maskOf(one);
    expect(withoutKeys(`/a${deep}${one}`)).toBe(`/a${deep}${masked}`);
    for (const spelt of [encodeAll(encodeAll(one)), encodeAll(encodeAll(encodeAll(one)))])
      expect(withoutKeys(`/a/${spelt}/x`)).toBe(`/a/${masked}/x`);
    let nested = one.slice(-1);
    for (let depth = 0; depth < 10; depth += 1)
      nested = nested.replaceAll(/[^%]/g, (each) => `%${hexOf(each)}`);
    expect(withoutKeys(`/a/${one.slice(0, -1)}${nested}`)).toBe(`/a/${masked}`);
    expect(withoutKeys(`/a/${one}/${encodeAll(one)}`)).toBe(`/a/${masked}/${masked}`);
  }
  for (const one of [root, token])
    for (const both of [`/${one}${encodeAll(one)}`, `/${encodeAll(one)}${one}`])
      expect(withoutKeys(both)).toBe(`/${maskOf(one)}${maskOf(one)}`);
  const parts = ["25", "%%3235", "25rk_", `25${"a".repeat(24)}.`, "...aaaa", "%25%32%35"];
  for (const long of parts.map((part) => `rk_${part.repeat(100_000)}`)) expect(withoutKeys(long)).toBe(long);
});

test("nothing is told of a text that is spelled over more often than anybody needs, and it is not read as often", () => {
  for (const times of [17, 5000])
    expect(withoutKeys(`rmd_${"%".repeat(times)}${"3".repeat(times)}4`)).toBe("...");
});

test("tokens of leases are masked, as where a client has percent-encoded the query of a browser's URL", () => {
  const token = tokenOf(secret, "a".repeat(24) as BrowserId, newLeaseId());
  const masked = `...${token.slice(-4)}`;
  for (const query of ["%3Ftoken=", "%3Ftoken%3D", "%253Ftoken%253d", "/", ";token="])
    expect(withoutKeys(`/browsers/a/cdp${query}${token}`)).toBe(`/browsers/a/cdp${query}${masked}`);
  for (const name of [`x${token}`, `${token}x`, `${"a".repeat(24)}.html`])
    expect(withoutKeys(name)).toBe(name);
});

test("signed tokens are masked, and a long text costs no more than its length", () => {
  const token = `${Buffer.from('{"alg":"RS256"}').toString("base64url")}.${"p".repeat(500)}.${"s".repeat(86)}`;
  expect(withoutKeys(`/browsers/${token}/x`)).toBe("/browsers/eyJ...ssss/x");
  for (const name of ["/eyJ.a", "/aeyJh.b.c", "/eyJh.b", "/v1.eyJh.b.c"])
    expect(withoutKeys(name)).toBe(name);
  const long = "eyJ".repeat(1_000_000);
  expect(withoutKeys(long)).toBe(long);
});

test("a mask shows the prefix and the last four characters, and a digest nothing of the key", () => {
  const text = draw();
  expect(maskOf(text)).toBe(`rmd_...${text.slice(-4)}`);
  expect(keyDigestOf(text)).toMatch(/^[\w-]{43}$/);
  expect(keyDigestOf(text)).not.toBe(keyDigestOf(draw()));
});
