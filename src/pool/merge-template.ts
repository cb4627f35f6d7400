import type { Resolved } from "../registry/references.js";
import { clearsProfile } from "../registry/profiles/selectors.js";
import {
  headfulMemory,
  headlessMemory,
  type MemoryClass,
  type PoolCreate,
  type PoolPatch,
  type SessionCreate,
  type Viewport,
} from "../spec/bodies.js";
import {
  checkNetwork,
  checkSelector,
  checkStartHost,
  checkStartUrl,
  fieldFault,
  type FieldFaults,
  normaliseNetwork,
} from "../spec/field-checks.js";
import {
  defaultViewport,
  type LaunchTemplate,
  type PoolSpec,
  refreshRateOf,
} from "../spec/launch-template.js";
import { checkPolicy, checkWebRtc } from "../spec/policies/policy-checks.js";
import { checkTelemetry, mergeTelemetry } from "../spec/telemetry.js";

/** What callers can say of a launch, of a pool or of a session, its references resolved. */
export type TemplateFields = Omit<PoolCreate & PoolPatch & SessionCreate, "size" | "region"> & Resolved;
export type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

interface EngineNeeds {
  readonly headless?: boolean | undefined;
  readonly extensions?: readonly unknown[] | undefined;
  readonly browser_policy?: object | undefined;
  readonly chrome_policy?: object | undefined;
}

/**
 * headless-shell has no extensions, no enterprise policy and no window (Chromium 156,
 * docs/chromium.md#headless-shell).
 */
const asksMore = ({ headless, extensions, browser_policy, chrome_policy }: EngineNeeds): boolean =>
  !headless || (extensions?.length ?? 0) > 0 || Object.keys(browser_policy ?? chrome_policy ?? {}).length > 0;

/**
 * The operator's engine, where it can do what is asked for: nobody who names no engine is refused because of
 * it.
 */
const engineFor = (
  body: Partial<TemplateFields>,
  engine: LaunchTemplate["engine"],
): LaunchTemplate["engine"] => (asksMore(body) ? "chromium" : engine);

const withRefreshRate = (viewport: Viewport): Required<Viewport> => ({
  ...viewport,
  refresh_rate: refreshRateOf(viewport),
});

/** Every default applied, and nothing asked for yet. */
export const blankTemplate = (
  body: Partial<TemplateFields>,
  engine: LaunchTemplate["engine"],
): LaunchTemplate => ({
  headless: false,
  stealth: false,
  kiosk_mode: false,
  engine: engineFor(body, engine),
  memory: "8GiB",
  viewport: withRefreshRate(defaultViewport),
});

/** `current` with the fields of `patch` written over it; what is wrong with them is added to `faults`. */
export function mergeTemplate(
  current: LaunchTemplate & Pick<PoolSpec, "is_engine_named">,
  patch: Partial<TemplateFields>,
  faults: FieldFaults,
): LaunchTemplate {
  const merged: Mutable<LaunchTemplate> = { ...pickLaunch(current) };
  for (const field of ["headless", "stealth", "kiosk_mode", "engine"] as const) {
    const value = patch[field];
    if (value !== undefined) Object.assign(merged, { [field]: value });
  }
  if (patch.protect_filled === true) merged.protect_filled = true;
  if (patch.protect_filled === false) delete merged.protect_filled;
  if (patch.node_selector) merged.node_selector = patch.node_selector;
  if (Object.keys(merged.node_selector ?? {}).length === 0) delete merged.node_selector;
  if (patch.viewport) merged.viewport = withRefreshRate(patch.viewport);
  mergeClearable(merged, patch, faults);
  if (patch.network) {
    checkNetwork(faults, patch.network);
    merged.network = normaliseNetwork(patch.network);
    if (Object.keys(patch.network).length === 0) delete merged.network;
  }
  checkTelemetry(faults, patch.telemetry);
  const telemetry = mergeTelemetry(current.telemetry, patch.telemetry);
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
    protect_filled,
    proxy_id,
    network,
    telemetry,
    node_selector,
  } = from;
  const { extensions, extension_ids, profile, profile_id, vaults, vault_ids } = from;
  return {
    headless,
    stealth,
    kiosk_mode,
    engine,
    memory,
    viewport,
    ...(start_url === undefined ? {} : { start_url }),
    ...(node_selector ? { node_selector } : {}),
    ...(browser_policy ? { browser_policy } : {}),
    ...(extensions ? { extensions } : {}),
    ...(extension_ids ? { extension_ids } : {}),
    ...(profile ? { profile } : {}),
    ...(profile_id ? { profile_id } : {}),
    ...(vaults ? { vaults } : {}),
    ...(vault_ids ? { vault_ids } : {}),
    ...(protect_filled ? { protect_filled } : {}),
    ...(proxy_id === undefined ? {} : { proxy_id }),
    ...(network ? { network } : {}),
    ...(telemetry ? { telemetry } : {}),
  };
}

/** Fields whose empty value removes them. */
function mergeClearable(
  merged: Mutable<LaunchTemplate>,
  patch: Partial<TemplateFields>,
  faults: FieldFaults,
): void {
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

/** Merges what was sent, which is shown again, and what it means, which browsers are launched from. */
function mergeReferences(
  merged: Mutable<LaunchTemplate>,
  { extensions, extension_ids, profile: asked, profile_id, vaults, vault_ids }: Partial<TemplateFields>,
  faults: FieldFaults,
): void {
  if (extensions) {
    for (const extension of extensions) checkSelector(faults, "extensions", extension);
    const isAny = extensions.length > 0;
    set(merged, "extensions", isAny ? extensions : undefined);
    set(merged, "extension_ids", isAny ? extension_ids : undefined);
  }
  if (vaults) {
    for (const vault of vaults) checkSelector(faults, "vaults", vault);
    set(merged, "vaults", vaults.length > 0 ? vaults : undefined);
    set(merged, "vault_ids", vaults.length > 0 ? vault_ids : undefined);
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
