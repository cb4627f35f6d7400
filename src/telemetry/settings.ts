import type { OtlpDestinationId } from "../base/ids.js";
import { type Telemetry, telemetryCategories } from "../spec/bodies.js";
import { exportedTo } from "../spec/telemetry.js";
import type { EventCategory } from "./event.js";

/** What one lease captures. */
export interface CaptureSettings {
  readonly categories: ReadonlySet<EventCategory>;
  /** CDP methods of which no event is made (docs/telemetry.md#configuration). */
  readonly excludedMethods: ReadonlySet<string>;
  /** False: events are kept only as long as those who read them live need it. */
  readonly isStored: boolean;
  /** Where events are exported to as well. */
  readonly destination?: OtlpDestinationId;
}

/** Categories that are seen by a CDP session of ours in the browser. */
const monitoredCategories = [
  "console",
  "network",
  "page",
  "interaction",
  "screenshot",
] as const satisfies readonly EventCategory[];

/** Whether a browser has to be watched from inside for it. */
export const isMonitored = ({ categories }: Pick<CaptureSettings, "categories">): boolean =>
  monitoredCategories.some((category) => categories.has(category));

/** Undefined where nothing is captured. */
export function captureSettings(telemetry: Telemetry | undefined): CaptureSettings | undefined {
  const { browser = {}, storage } = telemetry ?? {};
  const on = telemetryCategories.filter((category) => browser[category]?.enabled === true);
  if (on.length === 0) return undefined;
  const destination = exportedTo(telemetry);
  return {
    categories: new Set<EventCategory>([...on, "monitor"]),
    excludedMethods: new Set(browser.control?.cdp?.excluded_methods ?? []),
    isStored: storage?.enabled !== false,
    ...(destination && { destination }),
  };
}
