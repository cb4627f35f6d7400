import { type Refusal, refusal } from "../base/errors.js";
import type { AcquireBody, SessionCreate, SessionPatch } from "./bodies.js";
import type { LaunchTemplate } from "./launch-template.js";
import { captures } from "./telemetry.js";

/**
 * The fields of a configuration whose machinery is not built here; empty and clearing values count as absent.
 */
export const unsupportedFields = (template: LaunchTemplate): readonly string[] =>
  captures(template.telemetry) ? ["telemetry"] : [];

/** Of an acquire's body: what the lease would need. */
export const unsupportedOfAcquire = (body: AcquireBody): readonly string[] => [
  ...(body.profile?.id || body.profile?.name ? ["profile"] : []),
  ...(captures(body.telemetry) ? ["telemetry"] : []),
];

/** Of POST /browsers: what goes beyond the launch configuration. */
export const unsupportedOfCreate = (body: SessionCreate): readonly string[] => [
  ...((body.vaults?.length ?? 0) > 0 ? ["vaults"] : []),
  ...(body.invocation_id ? ["invocation_id"] : []),
];

/** Of PATCH /browsers/{id}: what later issues build. */
export const unsupportedOfPatch = (body: SessionPatch): readonly string[] =>
  captures(body.telemetry) ? ["telemetry"] : [];

export const notSupported = (fields: readonly string[]): Refusal =>
  refusal("not_supported", {
    message: `This deployment does not have what these fields need: ${fields.join(", ")}`,
    details: fields.map((field) => ({ code: "not_supported", message: `${field}: is not built yet` })),
  });
