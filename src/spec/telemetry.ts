import { findOtlpDestinationId, type OtlpDestinationId } from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import { Telemetry, telemetryCategories } from "./bodies.js";
import { checkSelector, fieldFault, type FieldFaults } from "./field-checks.js";
import { reportedMethods } from "./reported-methods.js";

/** The categories that are captured wherever anything is, unless they are switched off. */
const defaultSet = {
  control: { enabled: true },
  connection: { enabled: true },
  system: { enabled: true },
  captcha: { enabled: true },
};

type Categories = NonNullable<Telemetry["browser"]>;

/** JSON text of what a lease changes of its browser's telemetry, as its record keeps it. */
const telemetryParser = parserOf("the telemetry of a lease", Telemetry);

/** True where this configuration switches anything on. */
const isAnyOn = (categories: Categories): boolean =>
  telemetryCategories.some((category) => categories[category]?.enabled === true);

/** A fault of what was sent, whatever it is merged into (docs/telemetry.md#configuration). */
export function checkTelemetry(faults: FieldFaults, telemetry: Telemetry | null | undefined): void {
  if (telemetry?.enabled === false && isAnySet(telemetry.browser))
    fieldFault(faults, "telemetry", "enabled false cannot be combined with categories");
  checkExcluded(faults, telemetry?.browser?.control?.cdp?.excluded_methods);
  const { otlp } = telemetry?.export ?? {};
  const field = "telemetry.export.otlp.destination";
  if (otlp?.destination) checkSelector(faults, field, otlp.destination);
  else if (otlp?.enabled === true) fieldFault(faults, field, "is required where enabled is true");
}

const reported: ReadonlySet<string> = new Set(reportedMethods);

/** One that is misspelled would go on being told. */
function checkExcluded(faults: FieldFaults, methods: readonly string[] = []): void {
  for (const [place, method] of methods.entries())
    if (!reported.has(method)) {
      const field = `telemetry.browser.control.cdp.excluded_methods[${place}]`;
      fieldFault(faults, field, "is no command that is told of");
    }
}

const isAnySet = (categories: Categories = {}): boolean => Object.keys(categories).length > 0;

/**
 * Merges what was sent as docs/telemetry.md#configuration says; undefined captures nothing. Absent, null and
 * `{}` change nothing; `enabled: true` begins with the default set again; `enabled: false` captures nothing;
 * categories alone are merged onto what is there, or onto the default set where nothing is.
 *
 * The result names every category of the default set, so that it is the same when it is merged once more,
 * whatever into.
 */
export function mergeTelemetry(
  current: Telemetry | undefined,
  patch: Telemetry | null | undefined,
): Telemetry | undefined {
  if (!patch) return current;
  const { enabled, browser = {}, storage, export: exported } = patch;
  if (enabled === false) return undefined;
  const begins = enabled === true || (current === undefined && isAnyOn(browser));
  const base = begins ? defaultSet : current?.browser;
  if (!base) return undefined;
  const categories = mergeCategories(base, browser);
  if (!isAnyOn(categories)) return undefined;
  const kept = {
    storage: isSent(storage) ? storage : current?.storage,
    export: isSent(exported?.otlp) ? exported : current?.export,
  };
  return {
    enabled: true,
    browser: categories,
    ...(kept.storage && { storage: kept.storage }),
    ...(kept.export && { export: kept.export }),
  };
}

/** An object without a field changes nothing of what is there. */
const isSent = (object: object | undefined): boolean =>
  object !== undefined && Object.keys(object).length > 0;

/**
 * What a lease keeps of a configuration that is to hold whatever its browser was launched with: `storage` and
 * `export` are named too, so that the launch's own do not come back.
 */
export const lastingTelemetry = (telemetry: Telemetry | undefined): Telemetry =>
  telemetry
    ? { storage: { enabled: true }, export: { otlp: { enabled: false } }, ...telemetry }
    : { enabled: false };

function mergeCategories(current: Categories, patch: Categories): Categories {
  const named = telemetryCategories.filter((category) => current[category] ?? patch[category]);
  return Object.fromEntries(
    named.map((category) => [category, mergeCategory(current[category], patch[category])]),
  );
}

function mergeCategory(current: Categories["control"], patch: Categories["control"]): Categories["control"] {
  const cdp = isSent(patch?.cdp) ? patch?.cdp : current?.cdp;
  return { ...current, ...patch, ...(cdp && { cdp }) };
}

/** What a lease's holder has captured: its browser's launch says it, and the lease changes that. */
export const telemetryOf = (
  launched: Telemetry | undefined,
  lease: { readonly telemetry?: string | undefined },
): Telemetry | undefined =>
  lease.telemetry === undefined
    ? mergeTelemetry(undefined, launched)
    : mergeTelemetry(mergeTelemetry(undefined, launched), telemetryParser.json(lease.telemetry));

/** A destination is exported to unless that is switched off. */
export function exportedTo(telemetry: Telemetry | undefined): OtlpDestinationId | undefined {
  const { enabled, destination } = telemetry?.export?.otlp ?? {};
  return enabled === false ? undefined : findOtlpDestinationId(destination?.id ?? "");
}
