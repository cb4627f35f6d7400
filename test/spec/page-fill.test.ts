import { expect, test } from "vitest";
import { isAllowedOrigin } from "../../src/spec/page-fill.js";

test.each([
  ["https://a.example", ["https://a.example"], true],
  ["https://a.example:8443", ["https://a.example:8443"], true],
  ["https://a.example", ["https://b.example", "https://a.example"], true],
  ["https://login.a.example", ["https://*.a.example"], true],
  ["https://x.login.a.example", ["https://*.a.example"], true],
  ["https://login.a.example:8443", ["https://*.a.example:8443"], true],
  ["https://a.example", ["https://*.a.example"], false],
  ["https://nota.example", ["https://*.a.example"], false],
  ["https://login.a.example:8443", ["https://*.a.example"], false],
  ["http://login.a.example", ["https://*.a.example"], false],
  ["https://a.example.evil.example", ["https://a.example", "https://*.a.example"], false],
  ["http://a.example", ["https://a.example"], false],
  ["https://a.example:8443", ["https://a.example"], false],
  ["null", ["https://a.example", "https://*.a.example"], false],
  ["https://a.example", [], false],
  ["https://a.example.", ["https://a.example", "https://*.a.example"], false],
  ["https://login.a.example.", ["https://*.a.example"], false],
  ["https://.a.example", ["https://a.example"], false],
  ["https://xn--login-9ta.a.example", ["https://*.a.example"], true],
  ["https://xn--a-example-9ta", ["https://*.a.example", "https://a.example"], false],
  ["https://a.example:443.evil.example", ["https://a.example", "https://*.a.example"], false],
])("%s and %j: %s", (origin, allowed, isAllowed) => {
  expect(isAllowedOrigin(origin, allowed)).toBe(isAllowed);
});
