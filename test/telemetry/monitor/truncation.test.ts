import { expect, test } from "vitest";
import { NetworkRequests } from "../../../src/telemetry/monitor/network-events.js";
import { Truncation } from "../../../src/telemetry/monitor/truncation.js";

test("texts are cut between characters", () => {
  const truncation = new Truncation();
  expect(truncation.text("häß", 100)).toBe("häß");
  expect(truncation.text("ä".repeat(10), 20)).toBe("ä".repeat(10));
  expect(truncation.wasCut).toBe(false);
  expect(truncation.text("ä".repeat(11), 21)).toBe("äää...[truncated]");
  expect(truncation.wasCut).toBe(true);
  expect(new Truncation().text("a😀😀😀😀😀", 20)).toBe("a😀...[truncated]");
  expect(new Truncation().text("x".repeat(1000), 20)).toBe("xxxxxx...[truncated]");
});

test.each(["ä", "€", "😀", "aä"])("whatever a text of %s is cut to, it is said that it was", (character) => {
  for (let count = 1; count < 400; count += 1) {
    const truncation = new Truncation();
    const text = character.repeat(count);
    expect([count, truncation.text(text, 256) === text]).toEqual([count, !truncation.wasCut]);
  }
});

test("addresses lose their passwords", () => {
  const url = (text: string): string | undefined => new Truncation().url(text);
  expect(url("https://me:secret@example.org/?a=b@c")).toBe("https://example.org/?a=b@c");
  expect(url("https://me:p@ss@example.org/me@there")).toBe("https://example.org/me@there");
  expect(url("https://example.org/me:secret@there")).toBe("https://example.org/me:secret@there");
  expect(url("view-source:https://me:secret@example.org/")).toBe("view-source:https://example.org/");
});

const told = (value: string): unknown => {
  const request = { url: "https://example.org/", headers: { link: value } };
  const { data } = new NetworkRequests().sent({ requestId: "1", request }, 1);
  return (data["headers"] as Record<string, unknown>)["link"];
};

test("so do addresses in headers, wherever they stand in them", () => {
  expect(told("<https://me:se,cret@a.example/x>; rel=preload, <ws://you:secret@b.example>")).toBe(
    "<https://a.example/x>; rel=preload, <ws://b.example>",
  );
  expect(told("img-src https://a.example; report-uri http://me:secret@b.example/?to=me@c")).toBe(
    "img-src https://a.example; report-uri http://b.example/?to=me@c",
  );
  expect(told("//me@example.org, mailto:me@example.org")).toBe("//me@example.org, mailto:me@example.org");
});

test.each([
  ["https://me:p@ss@host/x@y", "https://host/x@y"],
  ["0;url=//me:secret@host/", "0;url=//host/"],
  ["<//me:p:a@ss@host>", "<//host>"],
  ["https:/me:secret@host", "https:/host"],
  ["https:///me:secret@host", "https:///host"],
  ["HTTPS:\\\\me:secret@host", "HTTPS:\\\\host"],
  [String.raw`{"url":"wss:\/\/me:secret@host"}`, String.raw`{"url":"wss:\/\/host"}`],
  ["redis://:sec\\ret@host", "redis://host"],
  ["https://host//a:b@c, https://host/a:b@c", "https://host//a:b@c, https://host/a:b@c"],
  ["file:///a:b@c, //host/a:b@c, // a:b@c", "file:///a:b@c, //host/a:b@c, // a:b@c"],
])("a password is found in %s also where its address is no usual one", (value, shown) => {
  expect(told(value)).toBe(shown);
});

test("a long header costs no more than its length", () => {
  for (const part of [
    "https://",
    "https:\\",
    "https:",
    "https:/a",
    "//",
    "//a:",
    "=//:",
    "a://",
    ":",
    "\\",
  ]) {
    const text = part.repeat(300_000);
    expect(new Truncation().header(text, text.length)).toBe(text);
  }
});
