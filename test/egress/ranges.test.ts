import { describe, expect, test } from "vitest";
import { isMetadata } from "../../src/base/net/metadata-addresses.js";
import { isClosed, isUnspecified, loopbackOf } from "../../src/egress/ranges.js";
import { parseHost } from "../../src/base/net/hosts.js";

const canonical = (text: string): string => parseHost(text)?.host ?? "no host";

describe("closed: first and last address, and the public neighbours of", () => {
  test.each<[string, string, string, string | null, string | null]>([
    ["this network", "0.0.0.0", "0.255.255.255", null, "1.0.0.0"],
    ["private 10/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"],
    ["carrier-grade NAT", "100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"],
    ["loopback", "127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"],
    ["link-local", "169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"],
    ["private 172.16/12", "172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"],
    ["IETF protocols", "192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"],
    ["documentation 1", "192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0"],
    ["6to4 relays", "192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0"],
    ["private 192.168/16", "192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"],
    ["benchmarks", "198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"],
    ["documentation 2", "198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0"],
    ["documentation 3", "203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0"],
    ["multicast and reserved", "224.0.0.0", "255.255.255.255", "223.255.255.255", null],
    ["everything before global unicast", "::", "1fff:ffff::ffff", null, "2000::"],
    ["IETF protocols, Teredo, ORCHID", "2001::", "2001:1ff:ffff::1", "2000:ffff::1", "2001:200::"],
    ["IPv6 documentation", "2001:db8::", "2001:db8:ffff::1", "2001:db7:ffff::1", "2001:db9::"],
    ["6to4", "2002::", "2002:ffff:ffff::1", "2001:ffff::1", "2003::"],
    ["IPv6 documentation, new", "3fff::", "3fff:fff:ffff::1", "3ffe:ffff::1", "3fff:1000::"],
    [
      "everything after global unicast",
      "4000::",
      "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
      "3fff:ffff:ffff::1",
      null,
    ],
  ])("%s", (...[, first, last, before, after]) => {
    expect([first, last].map((address) => isClosed(canonical(address)))).toEqual([true, true]);
    for (const neighbour of [before, after])
      expect(neighbour !== null && isClosed(canonical(neighbour))).toBe(false);
  });
});

describe("closed IPv4 in the dress of IPv6:", () => {
  test.each([
    ["IPv4-mapped loopback", "::ffff:127.0.0.1"],
    ["IPv4-mapped private in hexadecimal", "::ffff:a00:1"],
    ["IPv4-compatible loopback", "::127.0.0.1"],
    ["IPv4-translated", "::ffff:0:127.0.0.1"],
    ["NAT64 of loopback", "64:ff9b::127.0.0.1"],
    ["NAT64 of private", "64:ff9b::10.0.0.1"],
    ["NAT64 of carrier-grade NAT", "64:ff9b::100.64.0.1"],
    ["NAT64 of 0.0.0.0", "64:ff9b::"],
    ["NAT64 of link-local", "64:ff9b::169.254.1.1"],
    ["NAT64 of multicast", "64:ff9b::224.0.0.1"],
    ["local NAT64 of private", "64:ff9b:1::10.0.0.1"],
    ["local NAT64 of public", "64:ff9b:1::8.8.8.8"],
    ["6to4 of private", "2002:a00:1::1"],
    ["6to4 of public", "2002:808:808::1"],
    ["Teredo", "2001::8.8.8.8"],
    ["Teredo of loopback, inverted", "2001:0:808:808::80ff:fffe"],
    ["unique local", "fd00::1"],
    ["link-local", "fe80::1"],
    ["site-local", "fec0::1"],
    ["multicast", "ff02::1"],
    ["loopback", "::1"],
    ["segment routing", "5f00::1"],
    ["what NAT64 has no bits for", "64:ff9b::1:8.8.8.8"],
  ])("%s", (_, address) => expect(isClosed(canonical(address))).toBe(true));
  test.each([
    ["IPv4-mapped public", "::ffff:8.8.8.8"],
    ["NAT64 of public", "64:ff9b::8.8.8.8"],
    ["global unicast", "2606:4700::1111"],
    ["IPv4", "8.8.8.8"],
  ])("but not %s", (_, address) => expect(isClosed(canonical(address))).toBe(false));
});

describe("metadata", () => {
  test.each([
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "::ffff:169.254.169.254",
    "64:ff9b::169.254.169.254",
    "64:ff9b::168.63.129.16",
    "[FD00:0EC2:0::254]",
    "2852039166",
    "0xa9.0xfe.0xa9.0xfe",
  ])("%s serves it, and is closed", (address) => {
    expect([isMetadata(canonical(address)), isClosed(canonical(address))]).toEqual([true, true]);
  });
  test.each(["169.254.169.253", "169.254.169.255", "fd00:ec2::255", "100.100.100.201", "8.8.8.8", "::1"])(
    "%s does not",
    (address) => expect(isMetadata(canonical(address))).toBe(false),
  );
});

test.each([
  ["0.0.0.0", true],
  ["::", true],
  ["::ffff:0.0.0.0", true],
  ["0", true],
  ["0.0.0.1", false],
  ["::1", false],
])("%s is unspecified: %s", (address, then) => {
  expect(isUnspecified(canonical(address))).toBe(then);
});

test.each([
  ["localhost", true],
  ["a.localhost", true],
  ["a.b.localhost", true],
  ["localhost.example", false],
  ["notlocalhost", false],
  ["localhost.localdomain", false],
])("%s is this machine: %s", (name, then) => {
  expect(loopbackOf(name)).toEqual(then ? ["127.0.0.1", "::1"] : undefined);
});
