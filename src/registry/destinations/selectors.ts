import { findOtlpDestinationId, type OtlpDestinationId } from "../../base/ids.js";
import type { Selector, Telemetry } from "../../spec/bodies.js";
import { fieldFault, type FieldFaults } from "../../spec/field-checks.js";
import { calledBy } from "../extensions/selectors.js";

/** The OTLP destinations of the project, as specifications of pools and bodies of sessions refer to them. */
export interface OtlpDestinationRefs {
  find(id: OtlpDestinationId): Promise<{ readonly id: OtlpDestinationId } | undefined>;
  findNamed(name: string): Promise<OtlpDestinationId | undefined>;
}

/** The destination that a configuration exports to, its selector being resolved. */
export const destinationOf = (telemetry: Telemetry | null | undefined): string | undefined =>
  telemetry?.export?.otlp?.destination?.id;

/**
 * A configuration of telemetry with the id of its destination, or a fault where there is none such. What has
 * not exactly one of id and name is left as it is: that is a fault of the body, told with its others.
 */
export async function resolveTelemetry<Given extends Telemetry | null | undefined>(
  refs: OtlpDestinationRefs,
  telemetry: Given,
): Promise<{ telemetry: Given; faults: FieldFaults }> {
  const otlp = telemetry?.export?.otlp;
  const selector = otlp?.destination;
  if (!telemetry || !selector || Boolean(selector.id) === Boolean(selector.name))
    return { telemetry, faults: [] };
  const id = await findSelected(refs, selector);
  if (id)
    return {
      telemetry: { ...telemetry, export: { ...telemetry.export, otlp: { ...otlp, destination: { id } } } },
      faults: [],
    };
  const faults: FieldFaults = [];
  const field = "telemetry.export.otlp.destination";
  fieldFault(faults, field, `there is no OTLP destination ${calledBy(selector)}`);
  return { telemetry, faults };
}

async function findSelected(
  refs: OtlpDestinationRefs,
  { id, name }: Selector,
): Promise<OtlpDestinationId | undefined> {
  if (name) return await refs.findNamed(name);
  const asked = findOtlpDestinationId(id ?? "");
  return asked && (await refs.find(asked))?.id;
}
