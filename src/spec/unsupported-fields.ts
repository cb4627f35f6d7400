import { type Refusal, refusal } from "../base/errors.js";
import type { AcquireBody, SessionCreate } from "./bodies.js";

/** Names the fields of an acquire's body that are not supported. */
export const unsupportedOfAcquire = (body: AcquireBody): readonly string[] =>
  body.profile?.id || body.profile?.name ? ["profile"] : [];

/** Names the fields of POST /browsers, beyond those of the launch template, that are not supported. */
export const unsupportedOfCreate = (body: SessionCreate): readonly string[] =>
  body.invocation_id ? ["invocation_id"] : [];

export const notSupported = (fields: readonly string[]): Refusal =>
  refusal("not_supported", {
    message: `This deployment does not have what these fields need: ${fields.join(", ")}`,
    details: fields.map((field) => ({ code: "not_supported", message: `${field}: is not built yet` })),
  });
