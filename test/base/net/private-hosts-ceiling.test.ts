import { describe, expect, test } from "vitest";
import { outsideCeiling } from "../../../src/base/net/private-hosts-ceiling.js";
import { patternsOf } from "../../../src/base/net/hosts.js";
import {
  createPoolSpec,
  type SpecDefaults,
  mergePoolSpec,
  createSessionTemplate,
} from "../../../src/pool/merge-spec.js";

const isUnder = (entry: string, ...ceiling: string[]): boolean =>
  outsideCeiling([entry], patternsOf(ceiling)).length === 0;

describe("the ceiling holds", () => {
  test.each<[entry: string, ceiling: string[]]>([
    ["10.1.2.3", ["10.0.0.0/8"]],
    ["10.1.2.3:80", ["10.0.0.0/8"]],
    ["10.1.0.0/16", ["10.0.0.0/8"]],
    ["10.0.0.0/8", ["10.0.0.0/8"]],
    ["10.1.2.3", ["10.1.2.3"]],
    ["10.1.2.3/32", ["10.1.2.3"]],
    ["10.1.2.3:80", ["10.1.2.3"]],
    ["10.1.2.3:80", ["10.1.2.3:80"]],
    ["::ffff:10.1.2.3", ["10.0.0.0/8"]],
    ["10.1.2.3", ["::ffff:10.0.0.0/104"]],
    ["::ffff:10.1.0.0/112", ["10.0.0.0/8"]],
    ["fd00::1", ["fd00::/8"]],
    ["[fd00::1]:80", ["fd00::/8"]],
    ["fd12::/16", ["fc00::/7"]],
    ["fd00::1/128", ["[FD00:0::1]"]],
    ["db.corp", ["db.corp"]],
    ["DB.corp.", ["db.corp"]],
    ["db.corp:5432", ["db.corp"]],
    ["db.corp", ["*.corp"]],
    ["a.db.corp", ["*.corp"]],
    ["*.db.corp", ["*.corp"]],
    ["*.corp", ["*.corp"]],
    ["*.corp:80", ["*.corp:80"]],
    ["bücher.corp", ["xn--bcher-kva.corp"]],
    ["localhost", ["127.0.0.0/8", "::1"]],
    ["localhost:80", ["127.0.0.1:80", "[::1]:80"]],
    ["*.localhost", ["127.0.0.0/8", "::/0"]],
    ["169.254.169.254", ["169.254.169.254"]],
  ])("%s under %s", (entry, ceiling) => expect(isUnder(entry, ...ceiling)).toBe(true));
});

describe("the ceiling does not hold", () => {
  test.each<[entry: string, ceiling: string[]]>([
    ["10.1.2.3", []],
    ["localhost", []],
    ["11.0.0.1", ["10.0.0.0/8"]],
    ["10.0.0.0/7", ["10.0.0.0/8"]],
    ["0.0.0.0/0", ["10.0.0.0/8"]],
    ["10.1.2.3", ["10.1.2.3:80"]],
    ["10.1.2.3:81", ["10.1.2.3:80"]],
    ["10.1.2.3/32", ["10.1.2.3:80"]],
    ["10.1.2.0/31", ["10.1.2.0"]],
    ["10.0.0.0/8", ["::/0"]],
    ["::ffff:10.0.0.1", ["::/0"]],
    ["::/0", ["0.0.0.0/0"]],
    ["fd00::/7", ["fd00::/8"]],
    ["64:ff9b::a00:1", ["10.0.0.0/8"]],
    // Two halves cover the whole, which is not looked into.
    ["10.0.0.0/8", ["10.0.0.0/9", "10.128.0.0/9"]],
    ["corp", ["*.corp"]],
    ["*.corp", ["db.corp"]],
    ["*.corp", ["*.db.corp"]],
    ["*.corp", ["corp"]],
    ["evilcorp", ["*.corp"]],
    ["xcorp.com", ["*.corp.com"]],
    ["db.corp.evil.com", ["*.corp"]],
    ["db.corp", ["db.corp:5432"]],
    ["*.corp:81", ["*.corp:80"]],
    ["*.corp", ["*.corp:80"]],
    // A name may resolve to anything, whatever it looks like.
    ["10.1.2.3.nip.io", ["10.0.0.0/8"]],
    ["db.corp", ["0.0.0.0/0", "::/0"]],
    ["10.0.0.1", ["*.corp"]],
    ["localhost", ["127.0.0.0/8"]],
    ["localhost", ["127.0.0.1:80", "[::1]:80"]],
    ["localhost.evil.com", ["127.0.0.0/8", "::1"]],
    ["127.0.0.1", ["localhost"]],
    // Only by its exact address is a cloud's metadata opened.
    ["169.254.169.254", ["169.254.0.0/16"]],
    ["fd00:ec2::254", ["fd00::/8"]],
    ["100.100.100.200:80", ["100.64.0.0/10"]],
    ["168.63.129.16", ["0.0.0.0/0"]],
    ["not a host", ["0.0.0.0/0"]],
  ])("%s under %s", (entry, ceiling) => expect(isUnder(entry, ...ceiling)).toBe(false));
});

const defaults: SpecDefaults = {
  fillRatePerMinute: 25,
  maxFillRatePerMinute: null,
  engine: "chromium",
  privateHostsCeiling: patternsOf(["10.0.0.0/8"]),
};
const messagesOf = (got: ReturnType<typeof createPoolSpec> | ReturnType<typeof createSessionTemplate>) =>
  got.kind === "refused" ? [got.code, ...(got.details ?? []).map(({ message }) => message)] : [];

test("what lies outside is refused with 400 that names each entry: at create, at PATCH and for a session", () => {
  const network = { private_hosts: ["10.1.0.0/16", "192.168.0.1", "db.corp"] };
  const refused = [
    "bad_request",
    ...['"192.168.0.1"', '"db.corp"'].map(
      (entry) =>
        `network.private_hosts: ${entry} is not among the private hosts that this deployment lets callers open`,
    ),
  ];
  expect(messagesOf(createPoolSpec({ size: 1, network }, defaults))).toEqual(refused);
  expect(messagesOf(createSessionTemplate({ network }, defaults))).toEqual(refused);
  const stored = createPoolSpec({ size: 1 }, defaults);
  if (stored.kind === "refused") throw new Error("the pool was refused");
  expect(messagesOf(mergePoolSpec(stored.value, { network }, defaults))).toEqual(refused);
  expect(
    messagesOf(createPoolSpec({ size: 1, network: { private_hosts: ["10.0.0.0/33", "x y"] } }, defaults)),
  ).toHaveLength(3);
});

test("a pool that was stored under another ceiling may still be changed where the network is not asked for", () => {
  const stored = createPoolSpec(
    { size: 1, network: { private_hosts: ["192.168.0.1"] } },
    { ...defaults, privateHostsCeiling: patternsOf(["0.0.0.0/0"]) },
  );
  if (stored.kind === "refused") throw new Error("the pool was refused");
  expect(mergePoolSpec(stored.value, { size: 2 }, defaults)).toMatchObject({ kind: "done" });
  expect(mergePoolSpec(stored.value, { network: {} }, defaults)).toMatchObject({ kind: "done" });
});
