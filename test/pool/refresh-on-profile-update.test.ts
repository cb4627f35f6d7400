import { describe, expect, test } from "vitest";
import type { PoolPatch } from "../../src/spec/bodies.js";
import type { PoolSpec } from "../../src/spec/launch-template.js";
import { mergePoolSpec } from "../../src/pool/merge-spec.js";
import { defaults, faultsOfPatch, faultsOfPool, made, meant, merged } from "../support/pool/specs.js";

describe("refresh_on_profile_update", () => {
  const one = { profile: { name: "one" } };
  test.each([
    ["a new profile turns it on", {}, one, true],
    [
      "another profile turns it on",
      { ...one, refresh_on_profile_update: false },
      { profile: { name: "two" } },
      true,
    ],
    ["the same reference leaves it", { ...one, refresh_on_profile_update: false }, one, false],
    [
      "the same profile by its id leaves it",
      { ...one, refresh_on_profile_update: false },
      { profile: { id: "one" } },
      false,
    ],
    ["what is said counts", one, { ...one, refresh_on_profile_update: false }, false],
    ["clearing the profile turns it off", one, { profile: { id: "" } }, false],
    ["nothing said leaves it", one, { size: 3 }, true],
  ] as const)("%s", (...[, current, patch, then]) =>
    expect(merged(current, patch).refresh_on_profile_update).toBe(then),
  );
  test("it needs a profile", () => {
    expect(faultsOfPool({ refresh_on_profile_update: true })).toEqual(["refresh_on_profile_update"]);
    expect(faultsOfPatch(one, { profile: { id: "" }, refresh_on_profile_update: true })).toEqual([
      "refresh_on_profile_update",
    ]);
    expect(made(one).refresh_on_profile_update).toBe(true);
  });

  const selectors = [
    undefined,
    { id: "a" },
    { name: "a" },
    { id: "b" },
    { name: "b" },
    { id: "" },
    { name: "" },
    {},
  ] as const;
  const flags = [undefined, true, false] as const;
  const bodies = selectors.flatMap((profile) =>
    flags.map((flag) => ({
      ...(profile && { profile }),
      ...(flag !== undefined && { refresh_on_profile_update: flag }),
    })),
  );
  interface State {
    readonly profile: string | undefined;
    readonly isOn: boolean;
  }

  /**
   * docs/api.md#changing-a-pool once more: the state after a PATCH, or undefined where it is
   * refused.
   */
  function expected(
    before: State,
    { profile, refresh_on_profile_update: flag }: PoolPatch,
  ): State | undefined {
    if (profile && Object.keys(profile).length === 0) return undefined;
    const after = profile ? profile.id || profile.name || undefined : before.profile;
    if (after === undefined) return flag ? undefined : { profile: undefined, isOn: false };
    if (flag !== undefined) return { profile: after, isOn: flag };
    return { profile: after, isOn: after === before.profile ? before.isOn : true };
  }

  test("holds through every three PATCHes in a row, whatever each says of the profile and of the flag", () => {
    let seen = 0;
    const walk = (spec: PoolSpec, state: State, left: number): void => {
      expect([spec.profile_id, spec.refresh_on_profile_update]).toEqual([state.profile, state.isOn]);
      if (left === 0) return;
      for (const body of bodies) {
        const outcome = mergePoolSpec(spec, meant(body), defaults);
        const then = expected(state, body);
        expect(outcome.kind, JSON.stringify([state, body])).toBe(then ? "done" : "refused");
        if (outcome.kind !== "done" || !then) continue;
        seen += 1;
        walk(outcome.value, then, left - 1);
      }
    };
    walk(made({}), { profile: undefined, isOn: false }, 3);
    expect(seen).toBeGreaterThan(1000);
  });
});
