import { type Refusal, refusal } from "../base/errors.js";
import type { AcquireBody, SessionCreate, SessionPatch } from "./bodies.js";
import type { LaunchTemplate } from "./launch-template.js";
import { captures } from "./telemetry.js";

/**
 * The fields of a configuration whose machinery is not built here; empty and clearing values count as absent.
 */
export const unsupportedFields = (template: LaunchTemplate): readonly string[] =>
  captures(template.telemetry) ? ["telemetry"] : [];

/** What of an acquire's body the lease would need and Remuda does not support. */
export const unsupportedOfAcquire = (body: AcquireBody): readonly string[] => [
  ...(body.profile?.id || body.profile?.name ? ["profile"] : []),
  ...(captures(body.telemetry) ? ["telemetry"] : []),
];

/** What of POST /browsers goes beyond the launch configuration and is not supported. */
export const unsupportedOfCreate = (body: SessionCreate): readonly string[] => [
  ...((body.vaults?.length ?? 0) > 0 ? ["vaults"] : []),
  ...(body.invocation_id ? ["invocation_id"] : []),
];

/** What of PATCH /browsers/{id} is not supported yet. */
export const unsupportedOfPatch = (body: SessionPatch): readonly string[] =>
  captures(body.telemetry) ? ["telemetry"] : [];

export const notSupported = (fields: readonly string[]): Refusal =>
  refusal("not_supported", {
    message: `This deployment does not have what these fields need: ${fields.join(", ")}`,
    details: fields.map((field) => ({ code: "not_supported", message: `${field}: is not built yet` })),
  });
