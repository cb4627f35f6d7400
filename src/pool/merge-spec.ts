import { isDeepStrictEqual } from "node:util";
import { type Done, done, type Refusal, refusal } from "../base/errors.js";
import {
  headfulMemory,
  headlessMemory,
  type MemoryClass,
  type Network,
  type PoolCreate,
  type PoolPatch,
  type SessionCreate,
  type Viewport,
} from "../spec/bodies.js";
import {
  checkNetwork,
  checkProxy,
  checkSelector,
  checkStartHost,
  checkStartUrl,
  fieldFault,
  type FieldFaults,
  normaliseNetwork,
} from "../spec/field-checks.js";
import { outsideCeiling } from "../base/net/private-hosts-ceiling.js";
import { type HostPattern, parseHostPattern } from "../base/net/hosts.js";
import {
  defaultViewport,
  type LaunchTemplate,
  type PoolSpec,
  refreshRateOf,
} from "../spec/launch-template.js";
import { clearsProfile } from "../registry/profiles/selectors.js";
import type { Resolved } from "../registry/references.js";
import { checkPolicy, checkWebRtc } from "../spec/policies/policy-checks.js";
import { mergeTelemetry } from "../spec/telemetry.js";

/** What the operator's configuration decides where a caller says nothing. */
export interface SpecDefaults {
  readonly fillRatePerMinute: number;
  readonly maxFillRatePerMinute: number | null;
  readonly engine: LaunchTemplate["engine"];
  /** What `network.private_hosts` may open at most. */
  readonly privateHostsCeiling: readonly HostPattern[];
}

type Fields = Omit<PoolCreate & PoolPatch & SessionCreate, "size" | "region"> & Resolved;
type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

const withRefreshRate = (viewport: Viewport): Required<Viewport> => ({
  ...viewport,
  refresh_rate: refreshRateOf(viewport),
});

const freshLaunch = (body: Partial<Fields>, defaults: SpecDefaults): LaunchTemplate => ({
  headless: false,
  stealth: false,
  kiosk_mode: false,
  engine: engineFor(body, defaults),
  memory: "8GiB",
  viewport: withRefreshRate(defaultViewport),
});

interface Asking {
  readonly headless?: boolean | undefined;
  readonly extensions?: readonly unknown[] | undefined;
  readonly browser_policy?: object | undefined;
  readonly chrome_policy?: object | undefined;
}

/**
 * headless-shell has no extensions, no enterprise policy and no window (Chromium 156,
 * docs/chromium.md#headless-shell).
 */
const asksMore = ({ headless, extensions, browser_policy, chrome_policy }: Asking): boolean =>
  !headless || (extensions?.length ?? 0) > 0 || Object.keys(browser_policy ?? chrome_policy ?? {}).length > 0;

/**
 * The operator's engine, where it can do what is asked for: nobody who names no engine is refused because of
 * it.
 */
const engineFor = (body: Partial<Fields>, { engine }: SpecDefaults): LaunchTemplate["engine"] =>
  asksMore(body) ? "chromium" : engine;

/** The whole configuration of a new pool whose references are resolved, or every fault of the body. */
export function createPoolSpec(
  body: PoolCreate & Resolved,
  defaults: SpecDefaults,
): Done<PoolSpec> | Refusal {
  const blank: PoolSpec = {
    ...freshLaunch(body, defaults),
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
    ...mergeLaunch(current, patch, faults),
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
  if (most !== null && merged.fill_rate_per_minute > most)
    fieldFault(faults, "fill_rate_per_minute", `must be at most ${most} here`);
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : done(merged);
}

/**
 * The launch configuration of an on-demand session whose references are resolved, or every fault of the body.
 */
export function createSessionTemplate(
  body: SessionCreate & Resolved,
  defaults: SpecDefaults,
): Done<LaunchTemplate> | Refusal {
  const faults: FieldFaults = [];
  const { proxy_id, ...rest } = body;
  const { mode, id = proxy_id } = body.proxy ?? {};
  const merged = mergeLaunch(
    freshLaunch(body, defaults),
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
  for (const vault of body.vaults ?? []) checkSelector(faults, "vaults", vault);
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : done(launch);
}

/**
 * What a caller asks for now. What was stored under another ceiling is its node's to refuse, and keeps nobody
 * from changing the rest.
 */
function checkCeiling(
  faults: FieldFaults,
  { network }: Partial<Fields>,
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

/** The part of a pool's configuration that a browser is launched from. */
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
 * Only the normalised allowlist raises the network generation, its removal included
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

function mergeLaunch(
  current: LaunchTemplate & Pick<PoolSpec, "is_engine_named">,
  patch: Partial<Fields>,
  faults: FieldFaults,
): LaunchTemplate {
  const merged: Mutable<LaunchTemplate> = { ...pickLaunch(current) };
  for (const field of ["headless", "stealth", "kiosk_mode", "engine"] as const) {
    const value = patch[field];
    if (value !== undefined) Object.assign(merged, { [field]: value });
  }
  if (patch.viewport) merged.viewport = withRefreshRate(patch.viewport);
  mergeClearable(merged, patch, faults);
  if (patch.network) {
    checkNetwork(faults, patch.network);
    merged.network = normaliseNetwork(patch.network);
    if (Object.keys(patch.network).length === 0) delete merged.network;
  }
  const telemetry = mergeTelemetry(current.telemetry, patch.telemetry, faults);
  if (telemetry) merged.telemetry = telemetry;
  else delete merged.telemetry;
  mergeMemory({ merged, asked: patch.memory, faults });
  if (!patch.engine && !current.is_engine_named && asksMore(merged)) merged.engine = "chromium";
  checkEngine(merged, faults);
  checkWebRtc(faults, merged.browser_policy, merged.network);
  checkStartHost(faults, merged.start_url, merged.network);
  return merged;
}

function pickLaunch(from: LaunchTemplate): LaunchTemplate {
  const {
    headless,
    stealth,
    kiosk_mode,
    engine,
    memory,
    viewport,
    start_url,
    browser_policy,
    proxy_id,
    network,
    telemetry,
  } = from;
  const { extensions, extension_ids, profile, profile_id } = from;
  return {
    headless,
    stealth,
    kiosk_mode,
    engine,
    memory,
    viewport,
    ...(start_url === undefined ? {} : { start_url }),
    ...(browser_policy ? { browser_policy } : {}),
    ...(extensions ? { extensions } : {}),
    ...(extension_ids ? { extension_ids } : {}),
    ...(profile ? { profile } : {}),
    ...(profile_id ? { profile_id } : {}),
    ...(proxy_id === undefined ? {} : { proxy_id }),
    ...(network ? { network } : {}),
    ...(telemetry ? { telemetry } : {}),
  };
}

/** Fields whose empty value removes them. */
function mergeClearable(merged: Mutable<LaunchTemplate>, patch: Partial<Fields>, faults: FieldFaults): void {
  const policy = patch.browser_policy ?? patch.chrome_policy;
  if (patch.browser_policy && patch.chrome_policy)
    fieldFault(faults, "chrome_policy", "is browser_policy under another name; send one of them");
  if (policy) {
    checkPolicy(faults, policy);
    set(merged, "browser_policy", Object.keys(policy).length > 0 ? policy : undefined);
  }
  mergeReferences(merged, patch, faults);
  if (patch.proxy_id !== undefined) set(merged, "proxy_id", patch.proxy_id || undefined);
  if (patch.start_url !== undefined) {
    checkStartUrl(faults, patch.start_url);
    set(merged, "start_url", patch.start_url || undefined);
  }
}

/** What is sent, to be told again, and what it means, to be launched from. */
function mergeReferences(
  merged: Mutable<LaunchTemplate>,
  { extensions, extension_ids, profile: asked, profile_id }: Partial<Fields>,
  faults: FieldFaults,
): void {
  if (extensions) {
    for (const extension of extensions) checkSelector(faults, "extensions", extension);
    const isAny = extensions.length > 0;
    set(merged, "extensions", isAny ? extensions : undefined);
    set(merged, "extension_ids", isAny ? extension_ids : undefined);
  }
  if (asked) {
    const { save_changes: _ignored, ...profile } = asked;
    const isCleared = clearsProfile(profile);
    if (!isCleared) checkSelector(faults, "profile", profile);
    set(merged, "profile", isCleared ? undefined : profile);
    set(merged, "profile_id", isCleared ? undefined : profile_id);
  }
}

function set<Key extends keyof LaunchTemplate>(
  merged: Mutable<LaunchTemplate>,
  key: Key,
  value: LaunchTemplate[Key] | undefined,
): void {
  if (value === undefined) delete merged[key];
  else Object.assign(merged, { [key]: value });
}

/** An omitted class follows `headless`; a named one has to fit it (docs/api.md#bounds-of-fields). */
function mergeMemory({
  merged,
  asked,
  faults,
}: {
  merged: Mutable<LaunchTemplate>;
  asked: MemoryClass | undefined;
  faults: FieldFaults;
}): void {
  const fitting = merged.headless ? headlessMemory : headfulMemory;
  merged.memory = asked ?? merged.memory;
  if (fitting.includes(merged.memory)) return;
  if (asked)
    fieldFault(faults, "memory", `must be one of ${fitting.join(", ")} when headless is ${merged.headless}`);
  merged.memory = fitting[0] ?? merged.memory;
}

/**
 * headless-shell has no extensions and no enterprise policy (Chromium 156, docs/chromium.md#headless-shell).
 */
function checkEngine(merged: LaunchTemplate, faults: FieldFaults): void {
  if (merged.engine !== "headless-shell") return;
  if (!merged.headless) fieldFault(faults, "engine", "headless-shell requires headless true");
  if (merged.extensions) fieldFault(faults, "extensions", "the engine headless-shell has none");
  if (merged.browser_policy)
    fieldFault(faults, "browser_policy", "the engine headless-shell has no policies");
}

/** docs/api.md#changing-a-pool, `refresh_on_profile_update`. */
function mergeRefresh(
  { current, merged, patch }: { current: PoolSpec; merged: Mutable<PoolSpec>; patch: Partial<Fields> },
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
