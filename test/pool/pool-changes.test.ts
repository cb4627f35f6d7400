import { describe, expect, test } from "vitest";
import type { PoolPatch } from "../../src/spec/bodies.js";
import { isExpectedNetwork, changesLaunch, changesNetwork } from "../../src/pool/spec-changes.js";
import { made, merged } from "../support/pool/specs.js";

describe("expected_network", () => {
  test.each([
    [undefined, {}, true],
    [undefined, { private_hosts: [] }, false],
    [{ private_hosts: [] }, {}, false],
    [{ private_hosts: [] }, { private_hosts: [] }, true],
    [{ allowed_hosts: ["a"] }, { allowed_hosts: [" A "] }, true],
    [{ allowed_hosts: ["a"] }, { allowed_hosts: ["a"], proxy_routes: [] }, false],
    [{ allowed_hosts: ["a", "b"] }, { allowed_hosts: ["b", "a"] }, false],
    [{ allowed_hosts: ["a"] }, { allowed_hosts: [] }, false],
    [
      { proxy_routes: [{ hosts: ["a"], proxy: { id: "p" } }] },
      { proxy_routes: [{ proxy: { id: "p" }, hosts: ["a"] }] },
      true,
    ],
    [
      { proxy_routes: [{ hosts: ["a"], proxy: { id: "p" } }] },
      { proxy_routes: [{ hosts: ["a"], proxy: { name: "p" } }] },
      false,
    ],
  ])("saved %j, expected %j: %s", (saved, expected, then) =>
    expect(isExpectedNetwork(saved, expected)).toBe(then),
  );
});

describe("generations", () => {
  test.each([
    [{ size: 9 }, false, false],
    [{ name: "other" }, false, false],
    [{ timeout_seconds: 99 }, false, false],
    [{ fill_rate_per_minute: 9 }, false, false],
    [{ reset_on_release: "state" }, false, false],
    [{ headless: true }, true, false],
    [{ memory: "16GiB" }, true, false],
    [{ start_url: "https://a.example" }, true, false],
    [{ network: { allowed_hosts: ["A.example "] } }, false, false],
    [{ network: { allowed_hosts: ["b.example"] } }, true, true],
    [{ network: {} }, true, true],
    [{ network: { allowed_hosts: ["a.example"], private_hosts: [] } }, true, false],
    [{ extensions: [{ name: "a" }, { id: "b" }], profile: { name: "p" } }, false, false],
    [{ extensions: [{ id: "b" }, { id: "a" }] }, true, false],
    [{ extensions: [] }, true, false],
    [{ profile: { id: "q" } }, true, false],
    [{ profile: { id: "" } }, true, false],
    [{ refresh_on_profile_update: false }, false, false],
  ] as [PoolPatch, boolean, boolean][])(
    "a PATCH of %j: a new launch %s, a new network %s",
    (patch, isLaunch, isNetwork) => {
      const current = {
        network: { allowed_hosts: ["a.example"] },
        extensions: [{ id: "a" }, { name: "b" }],
        profile: { id: "p" },
      };
      const [before, after] = [made(current), merged(current, patch)];
      expect([changesLaunch(before, after), changesNetwork(before, after)]).toEqual([isLaunch, isNetwork]);
    },
  );
});
