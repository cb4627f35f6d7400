import { type Static, Type } from "typebox";
import type { BrowserId, LeaseId } from "../base/ids.js";
import { parserOf, readonlyList } from "../base/parser.js";

/** What a fill may have at most, as docs/vault.md#fill says it. */
const fillBounds = {
  fields: 100,
  selectorLength: 4096,
  valueLength: 65_536,
  pageUrlLength: 8192,
  mostTimeoutMs: 30_000,
} as const;

/** A text as it is, or the seed of which the code of the moment is computed just before it is written. */
const FillValue = Type.Union([
  Type.Object({ kind: Type.Literal("text"), text: Type.String({ maxLength: fillBounds.valueLength }) }),
  Type.Object({ kind: Type.Literal("totp"), seed: Type.String({ maxLength: fillBounds.valueLength }) }),
]);
export type FillValue = Readonly<Static<typeof FillValue>>;

/** Values for inputs of a page. It is made where it is carried out, since there are secrets in it. */
const PageFill = Type.Object({
  /** The address of the page, with query and fragment; without it there has to be just one page. */
  page_url: Type.Optional(Type.String({ maxLength: fillBounds.pageUrlLength })),
  timeout_ms: Type.Integer({ minimum: 1, maximum: fillBounds.mostTimeoutMs }),
  /** Where the values may go: the page and each frame with a target are asked. Absent: everywhere. */
  allowed_origins: Type.Optional(readonlyList(Type.String({ maxLength: 512 }))),
  /** Clients do not read the page back, until it shows another document. */
  protect_filled: Type.Optional(Type.Literal(true)),
  fields: readonlyList(
    Type.Object({
      /** CSS. */
      selector: Type.String({ minLength: 1, maxLength: fillBounds.selectorLength }),
      value: FillValue,
    }),
  ),
});
export type PageFill = Readonly<Static<typeof PageFill>>;

/** Whom an order to fill is sealed for: it opens for no other lease. */
export const fillOwner = (browser: BrowserId, lease: LeaseId): string => `fill ${browser} ${lease}`;

export const fillErrorCodes = [
  "target_changed",
  "element_not_found",
  "ambiguous_selector",
  "element_not_editable",
  "option_not_found",
  "timeout",
  "execution_failed",
] as const;
export type FillErrorCode = (typeof fillErrorCodes)[number];

/** What became of one field. `unknown`: the value may be on the page, or may not. */
const WrittenField = Type.Object({
  index: Type.Integer({ minimum: 0 }),
  status: Type.Enum(["filled", "failed", "not_attempted", "unknown"]),
  error_code: Type.Optional(Type.Enum(fillErrorCodes)),
});
export type WrittenField = Readonly<Static<typeof WrittenField>>;

/** Why nothing was written, before any field was looked at on its own. */
const refusals = [
  "page_not_found",
  "ambiguous_page",
  "invalid_selector",
  "destination_denied",
  "browser_gone",
] as const;
export type FillRefusal = (typeof refusals)[number];

/** What a node answers: it never has a value in it, nor a word of the page or of Chromium. */
const PageFillOutcome = Type.Union([
  Type.Object({ kind: Type.Literal("refused"), why: Type.Enum(refusals) }),
  Type.Object({
    kind: Type.Literal("ended"),
    status: Type.Enum(["completed", "failed", "unknown"]),
    fields: readonlyList(WrittenField),
  }),
]);
export type PageFillOutcome = Readonly<Static<typeof PageFillOutcome>>;
export const pageFillOutcomeParser = parserOf("the outcome of a fill", PageFillOutcome);

const wildOrigin = /^(https?:\/\/)\*\.([^/]+)$/;

/**
 * Whether a value may go to an origin: `https://host[:port]` names one, `https://*.host[:port]` all hosts
 * below it and not the host itself.
 */
export function isAllowedOrigin(origin: string, allowed: readonly string[]): boolean {
  return allowed.some((pattern) => {
    const [, scheme, host] = wildOrigin.exec(pattern) ?? [];
    if (scheme === undefined || host === undefined) return origin === pattern;
    return origin.startsWith(scheme) && origin.slice(scheme.length).endsWith(`.${host}`);
  });
}
