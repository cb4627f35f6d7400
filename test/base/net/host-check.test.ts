import { expect, test } from "vitest";
import { makeHostCheck } from "../../../src/base/net/host-check.js";

const local = makeHostCheck({
  host: "127.0.0.1",
  urls: ["https://Remuda.example.com", null, "http://[fd00::7]:4701"],
});

test.each([
  "localhost",
  "localhost:4700",
  "LOCALHOST:1",
  "localhost.",
  "127.0.0.1",
  "127.0.0.1:4700",
  "127.9.9.9:80",
  "[::1]",
  "[::1]:4700",
])("%s is a name of loopback", (host) =>
  expect([local.admits(host), local.isLocal(host)]).toEqual([true, true]),
);

test.each(["remuda.example.com", "remuda.example.com:443", "REMUDA.example.com.", "[fd00::7]:4701"])(
  "%s is known, and not local",
  (host) => expect([local.admits(host), local.isLocal(host)]).toEqual([true, false]),
);

test.each([
  "evil.test",
  "evil.test:4700",
  "localhost.evil.test",
  "127.0.0.1.evil.test",
  "evil.test@127.0.0.1",
  "127.0.0.1@evil.test",
  "127.0.0.1:80:80",
  "0.0.0.0",
  "10.0.0.1",
  "[::]",
  "[::ffff:7f00:1]",
  "xlocalhost",
  "127.1",
  "2130706433",
  "",
  " ",
  "example.com",
  "evil.test\tlocalhost",
  "[localhost]evil",
])("%j is for somebody else", (host) =>
  expect([local.admits(host), local.isLocal(host)]).toEqual([false, false]),
);

test("where others can connect every name may lead here, and nobody is local", () => {
  for (const host of ["0.0.0.0", "::", "10.0.0.7", "remuda.example.com"]) {
    const open = makeHostCheck({ host, urls: [] });
    expect([open.admits("evil.test"), open.isLocal("127.0.0.1"), open.isLocal(undefined)]).toEqual([
      true,
      false,
      false,
    ]);
  }
});

test("HTTP/1.0 may name no host, and is not local", () => {
  expect([local.admits(undefined), local.isLocal(undefined)]).toEqual([true, false]);
});
