import { type HostPattern, parseHostPattern } from "../base/net/hosts.js";
import { outsideCeiling } from "../base/net/private-hosts-ceiling.js";
import { type Done, done, type Refusal, refusal } from "../base/errors.js";
import type { Resolved } from "../registry/references.js";
import type { PoolCreate, PoolPatch, SessionCreate } from "../spec/bodies.js";
import { checkProxy, fieldFault, type FieldFaults } from "../spec/field-checks.js";
import type { LaunchTemplate, PoolSpec } from "../spec/launch-template.js";
import { blankTemplate, mergeTemplate, type Mutable, type TemplateFields } from "./merge-template.js";

/** What the operator's configuration decides where a caller says nothing. */
export interface SpecDefaults {
  readonly fillRatePerMinute: number;
  readonly maxFillRatePerMinute: number | null;
  readonly engine: LaunchTemplate["engine"];
  /** What `network.private_hosts` may open at most. */
  readonly privateHostsCeiling: readonly HostPattern[];
}

/** The whole specification of a new pool whose references are resolved, or every fault of the body. */
export function createPoolSpec(
  body: PoolCreate & Resolved,
  defaults: SpecDefaults,
): Done<PoolSpec> | Refusal {
  const blank: PoolSpec = {
    ...blankTemplate(body, defaults.engine),
    size: body.size,
    fill_rate_per_minute: defaults.fillRatePerMinute,
    timeout_seconds: 600,
    reset_on_release: "none",
    refresh_on_profile_update: false,
  };
  return mergePoolSpec(blank, body, defaults);
}

/**
 * `current` with the fields of `patch` written over it: omitted ones stay, clearing values remove
 * (docs/api.md#changing-a-pool).
 */
export function mergePoolSpec(
  current: PoolSpec,
  patch: Omit<PoolPatch, "expected_network"> & Resolved,
  defaults: SpecDefaults,
): Done<PoolSpec> | Refusal {
  const faults: FieldFaults = [];
  const { size, fill_rate_per_minute, timeout_seconds, reset_on_release, name, refresh_on_profile_update } =
    current;
  const merged: Mutable<PoolSpec> = {
    ...mergeTemplate(current, patch, faults),
    size,
    fill_rate_per_minute,
    timeout_seconds,
    reset_on_release,
    ...(name === undefined ? {} : { name }),
    ...(refresh_on_profile_update === undefined ? {} : { refresh_on_profile_update }),
    ...(current.is_engine_named || patch.engine ? { is_engine_named: true } : {}),
  };
  if (patch.size !== undefined) merged.size = patch.size;
  if (patch.fill_rate_per_minute !== undefined) merged.fill_rate_per_minute = patch.fill_rate_per_minute;
  if (patch.timeout_seconds !== undefined) merged.timeout_seconds = patch.timeout_seconds;
  if (patch.reset_on_release !== undefined) merged.reset_on_release = patch.reset_on_release;
  if (patch.name) merged.name = patch.name;
  mergeRefresh({ current, merged, patch }, faults);
  checkCeiling(faults, patch, defaults);
  const most = defaults.maxFillRatePerMinute;
  if (most !== null && (patch.fill_rate_per_minute ?? 0) > most)
    fieldFault(faults, "fill_rate_per_minute", `must be at most ${most} here`);
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : done(merged);
}

/**
 * The launch template of an on-demand session whose references are resolved, or every fault of the body.
 */
export function createSessionTemplate(
  body: SessionCreate & Resolved,
  defaults: SpecDefaults,
): Done<LaunchTemplate> | Refusal {
  const faults: FieldFaults = [];
  const { proxy_id, ...rest } = body;
  const { mode, id = proxy_id } = body.proxy ?? {};
  const merged = mergeTemplate(
    blankTemplate(body, defaults.engine),
    { ...rest, ...(id ? { proxy_id: id } : {}) },
    faults,
  );
  const launch = { ...merged, ...(mode ? { proxy_mode: mode } : {}), ...savingProfile(merged, body) };
  checkCeiling(faults, body, defaults);
  if (body.proxy && proxy_id) fieldFault(faults, "proxy", "cannot be combined with proxy_id");
  if (body.proxy) checkProxy(faults, body.proxy);
  if (body.gpu && body.headless) fieldFault(faults, "gpu", "requires headless false");
  if (body.gpu && body.memory) fieldFault(faults, "memory", "cannot be chosen with gpu");
  if (body.video_memory && !body.gpu) fieldFault(faults, "video_memory", "requires gpu true");
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : done(launch);
}

/**
 * What a caller asks for now. What was stored under another ceiling is its node's to refuse, and keeps nobody
 * from changing the rest.
 */
function checkCeiling(
  faults: FieldFaults,
  { network }: Partial<TemplateFields>,
  { privateHostsCeiling }: SpecDefaults,
): void {
  const readable = network?.private_hosts?.filter(
    (host) => parseHostPattern(host, { withRanges: true }).kind === "pattern",
  );
  for (const host of outsideCeiling(readable ?? [], privateHostsCeiling)) {
    fieldFault(
      faults,
      "network.private_hosts",
      `${JSON.stringify(host)} is not among the private hosts that this deployment lets callers open`,
    );
  }
}

/**
 * Browsers of pools never save (docs/extensions-and-profiles.md#profiles), those of sessions where it is
 * asked for.
 */
const savingProfile = (
  { profile }: LaunchTemplate,
  { profile: asked }: SessionCreate,
): Pick<LaunchTemplate, "profile"> =>
  profile && asked?.save_changes !== undefined
    ? { profile: { ...profile, save_changes: asked.save_changes } }
    : {};

/** docs/api.md#changing-a-pool, `refresh_on_profile_update`. */
function mergeRefresh(
  {
    current,
    merged,
    patch,
  }: { current: PoolSpec; merged: Mutable<PoolSpec>; patch: Partial<TemplateFields> },
  faults: FieldFaults,
): void {
  if (patch.refresh_on_profile_update && !merged.profile)
    fieldFault(faults, "refresh_on_profile_update", "requires a profile");
  if (!merged.profile) {
    merged.refresh_on_profile_update = false;
    return;
  }
  // The same profile by its name instead of its id is the same reference.
  const isNew = current.profile_id !== merged.profile_id;
  if (patch.refresh_on_profile_update !== undefined)
    merged.refresh_on_profile_update = patch.refresh_on_profile_update;
  else if (isNew) merged.refresh_on_profile_update = true;
}
