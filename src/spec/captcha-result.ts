import { type Static, Type } from "typebox";

/**
 * The body of POST /browsers/{id}/telemetry/captcha_solve_results (docs/telemetry.md#captchas), and the data
 * of the event that is made of it. Neither the solution nor an address with its query has a field.
 */
export const CaptchaResult = Type.Object(
  {
    captcha_type: Type.Enum(["hcaptcha", "recaptcha_v2", "recaptcha_v3", "turnstile", "geetest", "other"]),
    status: Type.Enum(["success", "failure", "timeout", "abandoned"]),
    duration_ms: Type.Number({ minimum: 0, maximum: 86_400_000 }),
    error_code: Type.Optional(
      Type.String({
        pattern: "^[A-Za-z0-9_.:-]{1,128}$",
        description: "A word of the solver's, as `ERROR_NO_SLOT`",
      }),
    ),
    task_id: Type.Optional(
      Type.String({ pattern: "^[A-Za-z0-9_.:-]{1,128}$", description: "The solver's own id of the task" }),
    ),
    website_host: Type.Optional(
      Type.String({
        pattern: "^[A-Za-z0-9_.:[\\]-]{1,255}$",
        description: "As `shop.example` or `shop.example:8443`",
      }),
    ),
    website_path: Type.Optional(
      Type.String({
        maxLength: 2048,
        pattern: "^/[^?#\\u0000-\\u0020]*$",
        description: "Without a query, which may hold secrets",
      }),
    ),
  },
  { additionalProperties: false },
);

export type CaptchaResult = Static<typeof CaptchaResult>;
