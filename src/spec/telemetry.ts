import { type Telemetry, telemetryCategories } from "./bodies.js";
import { fieldFault, type FieldFaults } from "./field-checks.js";

/** The categories that `enabled: true` turns on (docs/api.md#changing-a-pool). */
const defaultSet = {
  control: { enabled: true },
  connection: { enabled: true },
  system: { enabled: true },
  captcha: { enabled: true },
};

type Categories = NonNullable<Telemetry["browser"]>;

/**
 * True where this configuration captures anything. A category that is switched off counts for more than
 * `enabled`.
 */
export function captures(telemetry: Telemetry | undefined | null): boolean {
  const categories: Categories = { ...(telemetry?.enabled ? defaultSet : {}), ...telemetry?.browser };
  return telemetryCategories.some((category) => categories[category]?.enabled === true);
}

/**
 * Merges a change as docs/api.md#changing-a-pool says: absent, null and `{}` change nothing; `enabled: true`
 * adds the default set to what is there; `enabled: false` clears everything; categories are merged one by
 * one.
 */
export function mergeTelemetry(
  current: Telemetry | undefined,
  patch: Telemetry | null | undefined,
  faults: FieldFaults,
): Telemetry | undefined {
  if (!patch || Object.keys(patch).length === 0) return current;
  if (patch.enabled === false) {
    if (captures({ browser: patch.browser ?? {} }))
      fieldFault(faults, "telemetry", "enabled false cannot be combined with enabled categories");
    return undefined;
  }
  const base: Telemetry = patch.enabled
    ? { ...current, browser: mergeCategories(current?.browser, defaultSet) }
    : (current ?? {});
  const merged: Telemetry = { ...base, ...patch, browser: mergeCategories(base.browser, patch.browser) };
  return Object.keys(merged.browser ?? {}).length === 0 &&
    !merged.export &&
    !merged.storage &&
    !merged.enabled
    ? undefined
    : merged;
}

function mergeCategories(current: Categories = {}, patch: Categories = {}): Categories {
  const named = telemetryCategories.filter((category) => current[category] ?? patch[category]);
  return Object.fromEntries(
    named.map((category) => [category, { ...current[category], ...patch[category] }]),
  );
}
