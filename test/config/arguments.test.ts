import { expect, test } from "vitest";
import { parseArguments } from "../../src/config/arguments.js";

test.each([
  [[], { kind: "start" }],
  [["--open-loopback"], { kind: "start", openLoopback: "all" }],
  [["--open-loopback=3000"], { kind: "start", openLoopback: 3000 }],
  [["--help"], { kind: "help" }],
  [["verify-audit", "--help"], { kind: "verify-audit", args: ["--help"] }],
  [["rewrap-vaults"], { kind: "rewrap-vaults", args: [] }],
  [["--open-loopback", "-h"], { kind: "help" }],
])("%j", (args, expected) => expect(parseArguments(args)).toEqual(expected));

test.each([
  "--open-loopback=",
  "--open-loopback=0",
  "--open-loopback=70000",
  "--open-loopback=10.0.0.1",
  "--open-loopback=080",
  "--open-loopbacks",
  "--open-private",
  "x",
])("%s is refused", (arg) => expect(parseArguments([arg])).toMatchObject({ kind: "refused" }));
test("what is given twice is refused", () => {
  expect(parseArguments(["--open-loopback=1", "--open-loopback=2"])).toMatchObject({ kind: "refused" });
});
