import { describe, expect, test } from "vitest";
import { closedRules, type DialledTarget, isStillAllowed, type Rules } from "../../src/egress/rules.js";
import { allowing, open, opening, patterns, through, upstream } from "../support/egress/judged-rules.js";

describe("an open tunnel after a swap of rules", () => {
  const direct = (host: string, address: string): DialledTarget => ({ host, port: 443, address });
  const carried = (host: string, upstreamId: string): DialledTarget => ({ host, port: 443, upstreamId });
  test.each<[string, Rules, DialledTarget, boolean]>([
    ["a host that is allowed", allowing("public.example"), direct("public.example", "8.8.8.8"), true],
    ["a host that is no longer", allowing("other.example"), direct("public.example", "8.8.8.8"), false],
    ["a list that is gone", open, direct("public.example", "8.8.8.8"), true],
    ["closed", closedRules, direct("public.example", "8.8.8.8"), false],
    ["another port only", allowing("public.example:80"), direct("public.example", "8.8.8.8"), false],
    [
      "a private address that is still open",
      opening("10.0.0.0/8"),
      direct("private.example", "10.0.0.5"),
      true,
    ],
    ["one that is open by name", opening("private.example"), direct("private.example", "10.0.0.5"), true],
    ["one that is no longer", open, direct("private.example", "10.0.0.5"), false],
    ["one in the dress of IPv6", open, direct("private.example", "::ffff:10.0.0.5"), false],
    ["metadata by range", opening("169.254.0.0/16"), direct("metadata.example", "169.254.169.254"), false],
    [
      "metadata named exactly",
      opening("169.254.169.254"),
      direct("metadata.example", "169.254.169.254"),
      true,
    ],
    ["an address as asked", allowing("8.8.8.8"), direct("8.8.8.8", "8.8.8.8"), true],
    ["an address that is not dialled yet", open, { host: "10.0.0.5", port: 80 }, false],
    [
      "a name that is not dialled yet",
      allowing("public.example"),
      { host: "public.example", port: 80 },
      true,
    ],
    [
      "a name not dialled, no longer allowed",
      allowing("a.example"),
      { host: "public.example", port: 80 },
      false,
    ],
    ["the same upstream", through("p"), carried("public.example", "p"), true],
    ["another upstream", through("q"), carried("public.example", "p"), false],
    ["no upstream any more", open, carried("public.example", "p"), false],
    ["an upstream where it was direct", through("p"), direct("public.example", "8.8.8.8"), false],
    ["direct by its bypass now", through("p", "public.example"), carried("public.example", "p"), false],
    ["direct by the bypass still", through("p", "public.example"), direct("public.example", "8.8.8.8"), true],
    [
      "private now",
      { ...through("p"), privates: patterns("public.example") },
      carried("public.example", "p"),
      false,
    ],
    [
      "localhost beside an upstream",
      { ...through("p"), privates: patterns("localhost") },
      direct("localhost", "127.0.0.1"),
      true,
    ],
    [
      "a route that took it over",
      { ...through("p"), routes: [{ hosts: patterns("public.example"), upstream: upstream("r") }] },
      carried("public.example", "p"),
      false,
    ],
    ["what is no host", open, direct("a%2eexample", "8.8.8.8"), false],
    ["what is no address", open, direct("public.example", "8.8.8.8%eth0"), false],
  ])("%s", (...[, rules, dialled, then]) => expect(isStillAllowed(rules, dialled)).toBe(then));
});
