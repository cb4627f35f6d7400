import { isDeepStrictEqual } from "node:util";
import { type Done, done, type Refusal, refusal } from "../base/errors.js";
import { headfulMemory, headlessMemory, type Memory, type Network, type PoolCreate, type PoolPatch, type SessionCreate, type Viewport } from "./config.js";
import { checkNetwork, checkProxy, checkSelector, checkStartHost, checkStartUrl, fault, type Faults, normaliseNetwork } from "./fields.js";
import { defaultViewport, type LaunchConfig, type PoolConfig, refreshRateOf } from "./launch-config.js";
import { checkPolicy, checkWebRtc } from "./policy.js";
import { mergeTelemetry } from "./telemetry.js";

/** What the operator's configuration decides where a caller says nothing. */
export interface Defaults {
  readonly fillRatePerMinute: number;
  readonly maxFillRatePerMinute: number | null;
  readonly engine: LaunchConfig["engine"];
}

type Fields = Omit<PoolCreate & PoolPatch & SessionCreate, "size" | "region">;
type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

const withRefreshRate = (viewport: Viewport): Required<Viewport> => ({ ...viewport, refresh_rate: refreshRateOf(viewport) });

const freshLaunch = (body: Partial<Fields>, defaults: Defaults): LaunchConfig => ({
  headless: false, stealth: false, kiosk_mode: false, engine: engineFor(body, defaults), memory: "8GiB",
  viewport: withRefreshRate(defaultViewport),
});

/** The operator's engine, where it can do what is asked for: nobody who names no engine is refused because of it. */
function engineFor({ headless, extensions, browser_policy, chrome_policy }: Partial<Fields>, { engine }: Defaults): LaunchConfig["engine"] {
  const asksMore = (extensions?.length ?? 0) > 0 || Object.keys(browser_policy ?? chrome_policy ?? {}).length > 0;
  return headless && !asksMore ? engine : "chromium";
}

/** The whole configuration of a new pool, or every fault of the body. */
export function createConfig(body: PoolCreate, defaults: Defaults): Done<PoolConfig> | Refusal {
  const blank: PoolConfig = {
    ...freshLaunch(body, defaults), size: body.size, fill_rate_per_minute: defaults.fillRatePerMinute, timeout_seconds: 600, reset_on_release: "none",
    refresh_on_profile_update: false,
  };
  return mergeConfig(blank, body, defaults);
}

/** `current` with the fields of `patch` written over it: omitted ones stay, clearing values remove (interface.md 4.4). */
export function mergeConfig(current: PoolConfig, patch: Omit<PoolPatch, "expected_network">, defaults: Defaults): Done<PoolConfig> | Refusal {
  const faults: Faults = [];
  const { size, fill_rate_per_minute, timeout_seconds, reset_on_release, name, refresh_on_profile_update } = current;
  const merged: Mutable<PoolConfig> = {
    ...mergeLaunch(current, patch, faults), size, fill_rate_per_minute, timeout_seconds, reset_on_release,
    ...(name === undefined ? {} : { name }), ...(refresh_on_profile_update === undefined ? {} : { refresh_on_profile_update }),
  };
  if (patch.size !== undefined) merged.size = patch.size;
  if (patch.fill_rate_per_minute !== undefined) merged.fill_rate_per_minute = patch.fill_rate_per_minute;
  if (patch.timeout_seconds !== undefined) merged.timeout_seconds = patch.timeout_seconds;
  if (patch.reset_on_release !== undefined) merged.reset_on_release = patch.reset_on_release;
  if (patch.name) merged.name = patch.name;
  mergeRefresh({ current, merged, patch }, faults);
  const most = defaults.maxFillRatePerMinute;
  if (most !== null && merged.fill_rate_per_minute > most) fault(faults, "fill_rate_per_minute", `must be at most ${most} here`);
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : done(merged);
}

/** The launch configuration of an on-demand session whose proxy is resolved, or every fault of the body. */
export function sessionConfig(body: SessionCreate, defaults: Defaults): Done<LaunchConfig> | Refusal {
  const faults: Faults = [];
  const { proxy_id, ...rest } = body;
  const { mode, id = proxy_id } = body.proxy ?? {};
  const merged = mergeLaunch(freshLaunch(body, defaults), { ...rest, ...(id ? { proxy_id: id } : {}) }, faults);
  const launch = { ...merged, ...(mode ? { proxy_mode: mode } : {}) };
  if (body.proxy && proxy_id) fault(faults, "proxy", "cannot be combined with proxy_id");
  if (body.proxy) checkProxy(faults, body.proxy);
  if (body.gpu && body.headless) fault(faults, "gpu", "requires headless false");
  if (body.gpu && body.memory) fault(faults, "memory", "cannot be chosen with gpu");
  if (body.video_memory && !body.gpu) fault(faults, "video_memory", "requires gpu true");
  for (const vault of body.vaults ?? []) checkSelector(faults, "vaults", vault);
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : done(launch);
}

/** The part of a pool's configuration that a browser is launched from. */
export function launchConfigOf(config: PoolConfig): LaunchConfig {
  const { size: _size, fill_rate_per_minute: _rate, timeout_seconds: _timeout, reset_on_release: _reset, name: _name, refresh_on_profile_update: _refresh, ...launch } = config;
  return launch;
}

export const isNewLaunch = (before: PoolConfig, after: PoolConfig): boolean =>
  !isDeepStrictEqual(launchConfigOf(before), launchConfigOf(after));

/** Only the normalised allowlist raises the network generation, its removal included (design.md 5, Generations). */
export const isNewNetwork = (before: PoolConfig, after: PoolConfig): boolean =>
  !isDeepStrictEqual(before.network?.allowed_hosts, after.network?.allowed_hosts);

/** interface.md 4.4, `expected_network`: `{}` when there was none; explicit empty lists differ from omitted ones. */
export const isExpectedNetwork = (saved: Network | undefined, expected: Network): boolean =>
  isDeepStrictEqual(saved ?? {}, normaliseNetwork(expected));

function mergeLaunch(current: LaunchConfig, patch: Partial<Fields>, faults: Faults): LaunchConfig {
  const merged: Mutable<LaunchConfig> = { ...pickLaunch(current) };
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
  checkEngine(merged, faults);
  checkWebRtc(faults, merged.browser_policy, merged.network);
  checkStartHost(faults, merged.start_url, merged.network);
  return merged;
}

function pickLaunch(from: LaunchConfig): LaunchConfig {
  const { headless, stealth, kiosk_mode, engine, memory, viewport, start_url, browser_policy, extensions, profile, proxy_id, network, telemetry } = from;
  return {
    headless, stealth, kiosk_mode, engine, memory, viewport,
    ...(start_url === undefined ? {} : { start_url }), ...(browser_policy ? { browser_policy } : {}), ...(extensions ? { extensions } : {}),
    ...(profile ? { profile } : {}), ...(proxy_id === undefined ? {} : { proxy_id }), ...(network ? { network } : {}), ...(telemetry ? { telemetry } : {}),
  };
}

/** Fields whose empty value removes them. */
function mergeClearable(merged: Mutable<LaunchConfig>, patch: Partial<Fields>, faults: Faults): void {
  const policy = patch.browser_policy ?? patch.chrome_policy;
  if (patch.browser_policy && patch.chrome_policy) fault(faults, "chrome_policy", "is browser_policy under another name; send one of them");
  if (policy) {
    checkPolicy(faults, policy);
    set(merged, "browser_policy", Object.keys(policy).length > 0 ? policy : undefined);
  }
  if (patch.extensions) {
    for (const extension of patch.extensions) checkSelector(faults, "extensions", extension);
    set(merged, "extensions", patch.extensions.length > 0 ? patch.extensions : undefined);
  }
  if (patch.profile) {
    const { save_changes: _ignored, ...profile } = patch.profile;
    const isCleared = !profile.id && !profile.name && Object.keys(profile).length > 0;
    if (!isCleared) checkSelector(faults, "profile", profile);
    set(merged, "profile", isCleared ? undefined : profile);
  }
  if (patch.proxy_id !== undefined) set(merged, "proxy_id", patch.proxy_id || undefined);
  if (patch.start_url !== undefined) {
    checkStartUrl(faults, patch.start_url);
    set(merged, "start_url", patch.start_url || undefined);
  }
}

function set<Key extends keyof LaunchConfig>(merged: Mutable<LaunchConfig>, key: Key, value: LaunchConfig[Key] | undefined): void {
  if (value === undefined) delete merged[key];
  else Object.assign(merged, { [key]: value });
}

/** An omitted class follows `headless`; a named one has to fit it (interface.md 4.6). */
function mergeMemory({ merged, asked, faults }: { merged: Mutable<LaunchConfig>; asked: Memory | undefined; faults: Faults }): void {
  const fitting = merged.headless ? headlessMemory : headfulMemory;
  merged.memory = asked ?? merged.memory;
  if (fitting.includes(merged.memory)) return;
  if (asked) fault(faults, "memory", `must be one of ${fitting.join(", ")} when headless is ${merged.headless}`);
  merged.memory = fitting[0] ?? merged.memory;
}

/** headless-shell has no extensions and no enterprise policy (chromium.md, "What does NOT work", 1). */
function checkEngine(merged: LaunchConfig, faults: Faults): void {
  if (merged.engine !== "headless-shell") return;
  if (!merged.headless) fault(faults, "engine", "headless-shell requires headless true");
  if (merged.extensions) fault(faults, "extensions", "the engine headless-shell has none");
  if (merged.browser_policy) fault(faults, "browser_policy", "the engine headless-shell has no policies");
}

/** interface.md 4.4, `refresh_on_profile_update`; wire-facts.md 2.1 for its default at creation. */
function mergeRefresh(
  { current, merged, patch }: { current: PoolConfig; merged: Mutable<PoolConfig>; patch: Partial<Fields> },
  faults: Faults,
): void {
  if (patch.refresh_on_profile_update && !merged.profile) fault(faults, "refresh_on_profile_update", "requires a profile");
  if (!merged.profile) {
    merged.refresh_on_profile_update = false;
    return;
  }
  const isNew = !isDeepStrictEqual(current.profile, merged.profile);
  if (patch.refresh_on_profile_update !== undefined) merged.refresh_on_profile_update = patch.refresh_on_profile_update;
  else if (isNew) merged.refresh_on_profile_update = true;
}
