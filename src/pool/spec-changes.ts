import { isDeepStrictEqual } from "node:util";
import type { Network } from "../spec/bodies.js";
import { normaliseNetwork } from "../spec/field-checks.js";
import type { LaunchTemplate, PoolSpec } from "../spec/launch-template.js";

/** The part of a pool's specification that a browser is launched from. */
export function launchTemplateOf(spec: PoolSpec): LaunchTemplate {
  const {
    size: _size,
    fill_rate_per_minute: _rate,
    timeout_seconds: _timeout,
    reset_on_release: _reset,
    name: _name,
    refresh_on_profile_update: _refresh,
    is_engine_named: _named,
    ...launch
  } = spec;
  return launch;
}

/** What extensions and the profile are called by is no part of a launch: their ids are. */
function launchedFrom(spec: PoolSpec): LaunchTemplate {
  const { extensions: _extensions, profile: _profile, ...launch } = launchTemplateOf(spec);
  return launch;
}

export const changesLaunch = (before: PoolSpec, after: PoolSpec): boolean =>
  !isDeepStrictEqual(launchedFrom(before), launchedFrom(after));

/**
 * Only a change of the normalised allowlist raises the network generation; its removal is such a change
 * (docs/api.md#generations).
 */
export const changesNetwork = (before: PoolSpec, after: PoolSpec): boolean =>
  !isDeepStrictEqual(before.network?.allowed_hosts, after.network?.allowed_hosts);

/**
 * Whether saves flush its idle browsers from now on, which they did not before, or did of another profile.
 */
export const startsRefresh = (before: PoolSpec, after: PoolSpec): boolean =>
  Boolean(after.refresh_on_profile_update) &&
  (!before.refresh_on_profile_update || before.profile_id !== after.profile_id);

/**
 * docs/api.md#changing-a-pool, `expected_network`: `{}` when there was none; explicit empty lists differ from
 * omitted ones.
 */
export const isExpectedNetwork = (saved: Network | undefined, expected: Network): boolean =>
  isDeepStrictEqual(saved ?? {}, normaliseNetwork(expected));
