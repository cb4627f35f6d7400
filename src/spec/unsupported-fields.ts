import { type Refusal, refusal } from "../base/errors.js";
import type { AcquireBody, SessionCreate, SessionPatch } from "./bodies.js";
import type { LaunchTemplate } from "./launch-template.js";
import { captures } from "./telemetry.js";

/** Names the fields of a configuration that are not built here. Empty and clearing values count as absent. */
export const unsupportedFields = (template: LaunchTemplate): readonly string[] =>
  captures(template.telemetry) ? ["telemetry"] : [];

/** Names the fields of an acquire's body that are not supported. */
export const unsupportedOfAcquire = (body: AcquireBody): readonly string[] => [
  ...(body.profile?.id || body.profile?.name ? ["profile"] : []),
  ...(captures(body.telemetry) ? ["telemetry"] : []),
];

/** Names the fields of POST /browsers, beyond the launch configuration, that are not supported. */
export const unsupportedOfCreate = (body: SessionCreate): readonly string[] => [
  ...((body.vaults?.length ?? 0) > 0 ? ["vaults"] : []),
  ...(body.invocation_id ? ["invocation_id"] : []),
];

/** Names the fields of PATCH /browsers/{id} that are not supported yet. */
export const unsupportedOfPatch = (body: SessionPatch): readonly string[] =>
  captures(body.telemetry) ? ["telemetry"] : [];

export const notSupported = (fields: readonly string[]): Refusal =>
  refusal("not_supported", {
    message: `This deployment does not have what these fields need: ${fields.join(", ")}`,
    details: fields.map((field) => ({ code: "not_supported", message: `${field}: is not built yet` })),
  });
