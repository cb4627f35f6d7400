import { expect, test } from "vitest";
import { mergeHeaders, parseEndpoint } from "../../../src/registry/destinations/fields.js";
import type { FieldFaults } from "../../../src/spec/field-checks.js";

const endpoint = (text: string): string => {
  const faults: FieldFaults = [];
  const url = parseEndpoint(faults, text);
  return faults.map(({ message }) => message).join() || String(url);
};
const merge = (patch: Record<string, string | null>, kept: Record<string, string> = {}) => {
  const faults: FieldFaults = [];
  const merged = mergeHeaders(faults, kept, patch);
  return faults.length > 0 ? faults.map(({ message }) => message) : merged;
};

test.each([
  ["https://otlp.example", "https://otlp.example/"],
  ["http://otlp.example:4318/", "http://otlp.example:4318/"],
  ["https://otlp.example/otlp//", "https://otlp.example/otlp"],
  ["https://otlp.example/v1/logs/own", "https://otlp.example/v1/logs/own"],
])("%s is an endpoint", (text, kept) => expect(endpoint(text)).toBe(kept));

test.each([
  ["otlp.example", "must be an http or https URL"],
  ["grpc://otlp.example:4317", "must be an http or https URL"],
  ["file:///etc/passwd", "must be an http or https URL"],
  ["https://me:secret@otlp.example", "must not have user information; credentials go into headers"],
  ["https://otlp.example?", "must have neither a query nor a fragment"],
  ["https://otlp.example/#x", "must have neither a query nor a fragment"],
  ["https://otlp.example/v1/logs", expect.stringContaining("must not end in /v1/logs")],
  ["https://otlp.example/otlp/v1/traces/", expect.stringContaining("must not end in /v1/logs")],
])("%s is none", (text, fault) => {
  expect(endpoint(text).replace("endpoint: ", "")).toEqual(fault);
});

test("headers are merged by their usual spelling; null deletes one", () => {
  const kept = merge({ authorization: "Bearer a", "x-api-KEY": "b" });
  expect(kept).toEqual({ Authorization: "Bearer a", "X-Api-Key": "b" });
  expect(merge({ AUTHORIZATION: "c", "x-api-key": null, "X-None": null }, kept as never)).toEqual({
    Authorization: "c",
  });
});

test("what would be no header, the exporter's own or too much is refused", () => {
  expect(merge({ "a b": "x", "": "x", "a:": "x" })).toEqual([
    'headers["a b"]: is no name of a header',
    'headers[""]: is no name of a header',
    'headers["a:"]: is no name of a header',
  ]);
  for (const value of ["a\r\nHost: b", "a\u0000", "ü", " a", "a "])
    expect(merge({ a: value })).toEqual([expect.stringMatching(/^headers\["a"\]: must be printable ASCII/)]);
  expect(merge({ a: "" })).toEqual(['headers["a"]: must have a value; null deletes a header']);
  expect(merge({ a: "1", A: "2" })).toEqual(['headers["A"]: is named twice']);
  for (const name of ["Host", "content-length", "Transfer-Encoding", "content-type", "User-Agent"])
    expect(merge({ [name]: "x" })).toEqual([expect.stringContaining("is set by the exporter itself")]);
  expect(merge({ a: "x".repeat(8191) })).toEqual({ A: "x".repeat(8191) });
  expect(merge({ b: "x" }, { A: "x".repeat(8191) })).toEqual([
    "headers: must have at most 8192 bytes together",
  ]);
});

test("names that objects have by themselves are headers like any other", () => {
  const patch = JSON.parse('{"__proto__": "x", "constructor": "y"}') as Record<string, string>;
  const merged = merge(patch);
  expect(Object.entries(merged)).toEqual([
    ["__proto__", "x"],
    ["Constructor", "y"],
  ]);
});
