import { expect, test } from "vitest";
import { makeClientAddress, subscriberOf } from "../../../src/base/net/client-address.js";

const trusted = ["10.0.0.0/8", "192.0.2.7", "fd00::/8"];
const addressOf = (remoteAddress: string | undefined, forwarded?: string | string[], proxies = trusted) =>
  makeClientAddress(proxies)({ socket: { remoteAddress }, headers: { "x-forwarded-for": forwarded } });

test.each([
  ["a stranger's own word is not believed", "203.0.113.9", "198.51.100.1", "203.0.113.9"],
  ["a proxy's word is", "10.1.2.3", "198.51.100.1", "198.51.100.1"],
  [
    "what stands left of a stranger was written by a stranger",
    "10.1.2.3",
    "1.1.1.1, 198.51.100.1",
    "198.51.100.1",
  ],
  ["proxies in a row are gone through", "10.1.2.3", "198.51.100.1, 192.0.2.7,10.9.9.9", "198.51.100.1"],
  ["where all are proxies it is the first of them", "10.1.2.3", "10.0.0.5, 192.0.2.7", "10.0.0.5"],
  ["a proxy that says nothing asks for itself", "10.1.2.3", undefined, "10.1.2.3"],
  ["what is no address ends the look", "10.1.2.3", "198.51.100.1, unknown, 10.0.0.5", "10.0.0.5"],
  ["a port is left out", "10.1.2.3", "198.51.100.1:4711", "198.51.100.1"],
  ["IPv6 comes in brackets, in any form", "10.1.2.3", "[2001:DB8:0::1]:443", "2001:db8::1"],
  ["IPv4 may come as IPv6", "::ffff:10.1.2.3", "::ffff:198.51.100.1", "198.51.100.1"],
  ["a proxy may have an IPv6 address", "fd00::1", "198.51.100.1", "198.51.100.1"],
  ["one whose address is not known is nobody's proxy", undefined, "198.51.100.1", ""],
])("%s", (...[, peer, forwarded, expected]) => {
  expect(addressOf(peer, forwarded)).toBe(expected);
});

test("several headers are one list, and a long one is not followed to its end", () => {
  expect(addressOf("10.1.2.3", ["1.1.1.1", "198.51.100.1, 10.0.0.5"])).toBe("198.51.100.1");
  const long = ["198.51.100.1", ...Array.from({ length: 3000 }, () => "10.0.0.5")].join(",");
  expect(addressOf("10.1.2.3", long)).toBe("10.0.0.5");
});

test("without proxies only the connection counts", () => {
  expect(addressOf("10.1.2.3", "198.51.100.1", [])).toBe("10.1.2.3");
  expect(addressOf("::ffff:10.1.2.3", "198.51.100.1", [])).toBe("10.1.2.3");
});

test("addresses of one IPv6 network are one subscriber's", () => {
  expect(subscriberOf("2001:db8:1:2:3::9")).toBe(subscriberOf("2001:db8:1:2::ffff"));
  expect(subscriberOf("2001:db8:1:3::")).not.toBe(subscriberOf("2001:db8:1:2::"));
  expect(subscriberOf("198.51.100.1")).toBe("198.51.100.1");
});
