import { describe, expect, test } from "vitest";
import { type HostPattern, parseHostPattern } from "../../src/base/net/hosts.js";

const label63 = "a".repeat(63);
const name253 = `${label63}.${label63}.${label63}.${"a".repeat(61)}`;
const noHost = "is neither a host name nor an address";

describe("a pattern of a name", () => {
  test.each<[string, string, string, HostPattern]>([
    ["an exact host", "example.com", "example.com", { kind: "name", name: "example.com", isWild: false }],
    ["a wildcard", "*.example.com", "*.example.com", { kind: "name", name: "example.com", isWild: true }],
    ["one label", "intranet", "intranet", { kind: "name", name: "intranet", isWild: false }],
    ["a wildcard of one label", "*.internal", "*.internal", { kind: "name", name: "internal", isWild: true }],
    [
      "a port",
      "example.com:8443",
      "example.com:8443",
      { kind: "name", name: "example.com", isWild: false, port: 8443 },
    ],
    [
      "a wildcard and a port",
      "*.example.com:1",
      "*.example.com:1",
      { kind: "name", name: "example.com", isWild: true, port: 1 },
    ],
    ["upper case", "EXAMPLE.Com", "example.com", { kind: "name", name: "example.com", isWild: false }],
    ["a trailing dot", "example.com.", "example.com", { kind: "name", name: "example.com", isWild: false }],
    [
      "a trailing dot before a port",
      "*.example.com.:443",
      "*.example.com:443",
      { kind: "name", name: "example.com", isWild: true, port: 443 },
    ],
    [
      "white space around it",
      " \texample.com\n",
      "example.com",
      { kind: "name", name: "example.com", isWild: false },
    ],
    [
      "another script",
      "*.BÜCHER.example",
      "*.xn--bcher-kva.example",
      { kind: "name", name: "xn--bcher-kva.example", isWild: true },
    ],
    [
      "a script already in ASCII",
      "xn--bcher-kva.example",
      "xn--bcher-kva.example",
      { kind: "name", name: "xn--bcher-kva.example", isWild: false },
    ],
    [
      "full-width letters and dots",
      "ｅxample。com",
      "example.com",
      { kind: "name", name: "example.com", isWild: false },
    ],
    [
      "an underscore and hyphens",
      "_a.r3---sn.example",
      "_a.r3---sn.example",
      { kind: "name", name: "_a.r3---sn.example", isWild: false },
    ],
    [
      "digits that are no address",
      "1.2.3.4.example",
      "1.2.3.4.example",
      { kind: "name", name: "1.2.3.4.example", isWild: false },
    ],
    [
      "a label of 63",
      `${label63}.example`,
      `${label63}.example`,
      { kind: "name", name: `${label63}.example`, isWild: false },
    ],
    ["a name of 253", name253, name253, { kind: "name", name: name253, isWild: false }],
  ])("%s", (...[, given, text, pattern]) => {
    expect(parseHostPattern(given, { withRanges: false })).toEqual({ kind: "pattern", pattern, text });
    expect(parseHostPattern(text, { withRanges: true })).toEqual({ kind: "pattern", pattern, text });
  });
});

describe("a pattern of an address", () => {
  test.each<[string, string, string, HostPattern]>([
    ["IPv4", "192.0.2.1", "192.0.2.1", { kind: "address", address: "192.0.2.1" }],
    ["IPv4 with a port", "192.0.2.1:80", "192.0.2.1:80", { kind: "address", address: "192.0.2.1", port: 80 }],
    ["IPv4 with a trailing dot", "192.0.2.1.", "192.0.2.1", { kind: "address", address: "192.0.2.1" }],
    ["bare IPv6", "2001:DB8:0:0::1", "2001:db8::1", { kind: "address", address: "2001:db8::1" }],
    ["bracketed IPv6", "[2001:db8::1]", "2001:db8::1", { kind: "address", address: "2001:db8::1" }],
    [
      "bracketed IPv6 with a port",
      "[::1]:3000",
      "[::1]:3000",
      { kind: "address", address: "::1", port: 3000 },
    ],
    ["bare IPv6 that ends like a port", "::1:80", "::1:80", { kind: "address", address: "::1:80" }],
    ["IPv4-mapped IPv6", "::ffff:192.0.2.1", "192.0.2.1", { kind: "address", address: "192.0.2.1" }],
    [
      "IPv4-mapped IPv6 with a port",
      "[::FFFF:c000:201]:80",
      "192.0.2.1:80",
      { kind: "address", address: "192.0.2.1", port: 80 },
    ],
  ])("%s", (...[, given, text, pattern]) => {
    expect(parseHostPattern(given, { withRanges: false })).toEqual({ kind: "pattern", pattern, text });
    expect(parseHostPattern(text, { withRanges: true })).toEqual({ kind: "pattern", pattern, text });
  });
});

describe("a range", () => {
  test.each<[string, string, string, HostPattern]>([
    ["IPv4", "10.0.0.0/8", "10.0.0.0/8", { kind: "range", address: "10.0.0.0", prefix: 8 }],
    ["all of IPv4", "0.0.0.0/0", "0.0.0.0/0", { kind: "range", address: "0.0.0.0", prefix: 0 }],
    ["one address", "10.0.0.1/32", "10.0.0.1/32", { kind: "range", address: "10.0.0.1", prefix: 32 }],
    ["IPv6", " FC00::/7 ", "fc00::/7", { kind: "range", address: "fc00::", prefix: 7 }],
    ["bracketed IPv6", "[fc00::]/7", "fc00::/7", { kind: "range", address: "fc00::", prefix: 7 }],
    ["one IPv6 address", "::1/128", "::1/128", { kind: "range", address: "::1", prefix: 128 }],
    [
      "IPv4-mapped IPv6",
      "::ffff:10.0.0.0/104",
      "10.0.0.0/8",
      { kind: "range", address: "10.0.0.0", prefix: 8 },
    ],
  ])("%s", (...[, given, text, pattern]) => {
    expect(parseHostPattern(given, { withRanges: true })).toEqual({ kind: "pattern", pattern, text });
    expect(parseHostPattern(given, { withRanges: false })).toEqual({
      kind: "fault",
      message: "must not be a range",
    });
  });

  const badPrefix = "must have a prefix that its address has bits for";
  const badBase = "must have a whole address before its prefix";
  test.each<[string, string, string]>([
    ["33 bits of IPv4", "10.0.0.0/33", badPrefix],
    ["129 bits of IPv6", "::/129", badPrefix],
    ["a huge prefix", "10.0.0.0/99999999999", badPrefix],
    ["fewer bits than an IPv4-mapped address is known by", "::ffff:0:0/95", badPrefix],
    ["part of an address", "10/8", badBase],
    ["a number", "10.0/16", badBase],
    ["octal", "010.0.0.0/8", badBase],
    ["a name", "example.com/24", badBase],
    ["a zone", "fe80::1%eth0/64", badBase],
    ["a port", "10.0.0.0:80/8", badBase],
    ["IPv4 in brackets", "[10.0.0.0]/8", badBase],
    ["a negative prefix", "10.0.0.0/-1", "must not have a path, a query or a fragment"],
    ["a mask", "10.0.0.0/255.0.0.0", "must not have a path, a query or a fragment"],
    ["a port after it", "10.0.0.0/8:80", "must not have a path, a query or a fragment"],
  ])("of %s is refused", (_, given, message) =>
    expect(parseHostPattern(given, { withRanges: true })).toEqual({ kind: "fault", message }),
  );
});

describe("refused", () => {
  const scheme = "must not have a scheme";
  const path = "must not have a path, a query or a fragment";
  const star = "may have a * only as its whole first label, as in *.example.com";
  const onlyStar = "must name more than *: leave the list out to mean every host";
  const port = "must have a port from 1 to 65535 after its colon";
  const empty = "must not have an empty label";
  const spaces = "must not have spaces or control characters in it";
  const percent = "must not have a %: neither escapes nor IPv6 zones are taken";
  const readAs = (address: string): string => `is read by browsers as the address ${address}: write that`;
  test.each<[string, string, string]>([
    ["nothing", "", "must not be empty"],
    ["white space", " \t", "must not be empty"],
    ["a scheme", "https://example.com", scheme],
    ["a scheme in upper case", "HTTPS://example.com", scheme],
    ["a scheme before a wildcard", "https://*.example.com", scheme],
    ["a path", "example.com/a", path],
    ["a bare slash", "example.com/", path],
    ["a query", "example.com?a", path],
    ["a fragment", "example.com#a", path],
    ["a backslash", "example.com\\a", path],
    ["no scheme but its slashes", "//example.com", path],
    ["a user", "me@example.com", "must not have user information"],
    ["a user and a password", "me:word@example.com", "must not have user information"],
    ["* in the middle", "a.*.example.com", star],
    ["* in a label", "*a.example.com", star],
    ["* at the end", "example.*", star],
    ["two *", "*.*.example.com", star],
    ["* as a port", "example.com:*", star],
    ["a full-width *", "＊.example.com", noHost],
    ["a bare *", "*", onlyStar],
    ["* and a dot", "*.", onlyStar],
    ["* and a port", "*:443", onlyStar],
    ["* before IPv4", "*.192.0.2.1", "must not have a * before an address"],
    ["* before IPv6", "*.[::1]", "must not have a * before an address"],
    ["* before a number", "*.1", "must not have a * before an address"],
    ["a dot", ".", empty],
    ["a leading dot", ".example.com", empty],
    ["two dots", "a..example.com", empty],
    ["two trailing dots", "example.com..", empty],
    ["a leading dot after *", "*..example.com", empty],
    ["a label of 64", `${label63}a.example`, "must have at most 63 characters (in ASCII) in each label"],
    [
      "a label that is too long in ASCII only",
      `${"ü".repeat(60)}.example`,
      "must have at most 63 characters (in ASCII) in each label",
    ],
    ["a name of 254", `${name253}a`, "must have at most 253 characters (in ASCII)"],
    ["a name of 300", `${"a.".repeat(149)}aa`, "must have at most 253 characters (in ASCII)"],
    ["no port after the colon", "example.com:", port],
    ["port 0", "example.com:0", port],
    ["port 65536", "example.com:65536", port],
    ["a port in words", "example.com:https", port],
    ["a port with a leading zero", "example.com:080", port],
    ["two ports", "example.com:1:2", port],
    ["a signed port", "example.com:+80", port],
    ["IPv6 with a bad port", "[::1]:0", port],
    ["a mail address's scheme", "mailto:me", port],
    ["a decimal address", "2130706433", readAs("127.0.0.1")],
    ["an octal address", "0177.0.0.1", readAs("127.0.0.1")],
    ["a short address", "127.1", readAs("127.0.0.1")],
    ["a hexadecimal address", "0x7f000001", readAs("127.0.0.1")],
    ["a leading zero", "010.0.0.1", readAs("8.0.0.1")],
    ["a short address with a port", "127.1:80", readAs("127.0.0.1")],
    ["full-width digits", "１27.0.0.1", readAs("127.0.0.1")],
    ["0", "0", readAs("0.0.0.0")],
    ["five numbers", "1.2.3.4.5", noHost],
    ["a number too large", "256.0.0.1", noHost],
    ["a name that ends in a number", "example.1", noHost],
    ["a space inside", "exa mple.com", spaces],
    ["a line break inside", "example.com\nb.example", spaces],
    ["a null", "example.com\u0000", spaces],
    ["an escape", "%65xample.com", percent],
    ["a zone", "fe80::1%eth0", percent],
    ["a zone in brackets", "[fe80::1%25eth0]", percent],
    ["IPv4 in brackets", "[192.0.2.1]", noHost],
    ["a name in brackets", "[example.com]", noHost],
    ["no IPv6", "[:::1]", noHost],
    ["nothing in brackets", "[]", noHost],
    // Node.js 26 takes "xn--a.example", which Node.js 20 refuses; no browser asks for such a name.
    ["bad punycode", "xn--é.example", noHost],
    ["a quote", "exa'mple.com", noHost],
    ["a comma", "a.example,b.example", noHost],
  ])("%s", (_, given, message) => {
    expect(parseHostPattern(given, { withRanges: false })).toEqual({ kind: "fault", message });
  });
});
