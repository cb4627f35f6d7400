import { describe, expect, test } from "vitest";
import { type HostPattern, matchesHost, parseHost, parseHostPattern } from "../../../src/base/net/hosts.js";

const label63 = "a".repeat(63);
const name253 = `${label63}.${label63}.${label63}.${"a".repeat(61)}`;

function patternOf(text: string): HostPattern {
  const parsed = parseHostPattern(text, { withRanges: true });
  if (parsed.kind === "fault") throw new Error(parsed.message);
  return parsed.pattern;
}

describe("a host as a request names it", () => {
  test.each<[string, string, "name" | "address", string]>([
    ["a name", "example.com", "name", "example.com"],
    ["upper case", "EXAMPLE.COM", "name", "example.com"],
    ["a trailing dot", "example.com.", "name", "example.com"],
    ["localhost with a trailing dot", "LOCALHOST.", "name", "localhost"],
    ["another script", "bücher.example", "name", "xn--bcher-kva.example"],
    ["an invisible character", "exa\u00admple.com", "name", "example.com"],
    ["an underscore", "_dmarc.example", "name", "_dmarc.example"],
    ["253 characters", name253, "name", name253],
    ["IPv4", "127.0.0.1", "address", "127.0.0.1"],
    ["IPv4 with a trailing dot", "127.0.0.1.", "address", "127.0.0.1"],
    ["decimal", "2130706433", "address", "127.0.0.1"],
    ["octal", "0177.0.0.1", "address", "127.0.0.1"],
    ["hexadecimal", "0x7f.0x0.0.0x1", "address", "127.0.0.1"],
    ["short", "127.1", "address", "127.0.0.1"],
    ["zero", "0", "address", "0.0.0.0"],
    ["full-width digits", "１２７.0.0.1", "address", "127.0.0.1"],
    ["IPv6", "::1", "address", "::1"],
    ["IPv6 in brackets", "[0:0::0001]", "address", "::1"],
    ["IPv6 in upper case", "[2001:DB8::A]", "address", "2001:db8::a"],
    ["IPv4-mapped", "[::ffff:127.0.0.1]", "address", "127.0.0.1"],
    ["IPv4-mapped in hexadecimal", "::FFFF:7f00:1", "address", "127.0.0.1"],
    ["IPv4-mapped in full", "[0:0:0:0:0:ffff:a9fe:a9fe]", "address", "169.254.169.254"],
    ["IPv4-compatible stays IPv6", "[::127.0.0.1]", "address", "::7f00:1"],
  ])("%s", (_, text, ...[kind, host]) => expect(parseHost(text)).toEqual({ kind, host }));

  test.each<[string, string]>([
    ["nothing", ""],
    ["a dot", "."],
    ["two trailing dots", "localhost.."],
    ["a port", "example.com:80"],
    ["IPv6 with a port", "[::1]:80"],
    ["a user", "a@example.com"],
    ["a path", "example.com/"],
    ["a backslash", "example.com\\"],
    ["an escape", "%6cocalhost"],
    ["escaped digits", "127.0.0.%31"],
    ["a zone", "fe80::1%eth0"],
    ["a zone in brackets", "[fe80::1%25eth0]"],
    ["a space", "exa mple.com"],
    ["spaces around it", " example.com "],
    ["a line break", "example.com\r\nX: y"],
    ["a null", "example.com\u0000.evil.example"],
    ["a *", "*.example.com"],
    ["300 characters", "a.".repeat(149) + "aa"],
    ["a label of 64", `${label63}a.example`],
    ["five numbers", "1.2.3.4.5"],
    ["IPv4 in brackets", "[127.0.0.1]"],
    ["half a bracket", "[::1"],
    ["no IPv6", "[1::2::3]"],
  ])("%s is none", (_, text) => expect(parseHost(text)).toBeUndefined());
});

describe("matching", () => {
  test.each<[string, string, string, number, boolean]>([
    ["the host", "example.com", "example.com", 443, true],
    ["on any port", "example.com", "example.com", 1, true],
    ["not its subdomain", "example.com", "www.example.com", 443, false],
    ["not what ends alike", "example.com", "badexample.com", 443, false],
    ["not what begins alike", "example.com", "example.com.evil.example", 443, false],
    ["a subdomain", "*.example.com", "www.example.com", 443, true],
    ["a deep subdomain", "*.example.com", "a.b.example.com", 443, true],
    ["not a wildcard's own domain", "*.example.com", "example.com", 443, false],
    ["not what ends alike of a wildcard", "*.example.com", "badexample.com", 443, false],
    ["the port", "example.com:8443", "example.com", 8443, true],
    ["not another port", "example.com:8443", "example.com", 443, false],
    ["a wildcard on its port", "*.example.com:80", "a.example.com", 80, true],
    ["a wildcard not on another", "*.example.com:80", "a.example.com", 81, false],
    ["an address", "192.0.2.1", "192.0.2.1", 80, true],
    ["not another address", "192.0.2.1", "192.0.2.10", 80, false],
    ["an address on its port", "192.0.2.1:80", "192.0.2.1", 80, true],
    ["an address not on another port", "192.0.2.1:80", "192.0.2.1", 81, false],
    ["IPv6", "[2001:db8::1]", "2001:db8::1", 80, true],
    ["a range's first", "10.0.0.0/8", "10.0.0.0", 80, true],
    ["a range's last", "10.0.0.0/8", "10.255.255.255", 80, true],
    ["not beyond a range", "10.0.0.0/8", "11.0.0.0", 80, false],
    ["a range written by one of its hosts", "10.1.2.3/8", "10.9.9.9", 80, true],
    ["an IPv6 range", "fc00::/7", "fdff::1", 80, true],
    ["not beyond an IPv6 range", "fc00::/7", "fe00::1", 80, false],
    ["not IPv4 in the range of all IPv6", "::/0", "10.0.0.1", 80, false],
    ["not IPv6 in the range of all IPv4", "0.0.0.0/0", "::1", 80, false],
    ["not a name in a range", "0.0.0.0/0", "example.com", 80, false],
  ])("%s", (...[, pattern, host, port, isMatch]) =>
    expect(matchesHost(patternOf(pattern), { host, port })).toBe(isMatch),
  );
});
