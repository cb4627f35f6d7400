import { type FieldFaults, fieldFault } from "../../spec/field-checks.js";
import { type HeaderValues, otlpDestinationBounds } from "./destination.js";

/** RFC 9110, 5.6.2. */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** RFC 9110, 5.5, without what is not ASCII: receivers read those bytes differently. */
const headerValue = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;

/**
 * Those of the request itself, which are the exporter's, and those that speak of the connection (RFC 9110,
 * 7.6.1).
 */
const ownHeaders = new Set(
  (
    "accept-encoding connection content-encoding content-length content-type expect host keep-alive " +
    "proxy-connection te trailer transfer-encoding upgrade user-agent"
  ).split(" "),
);

/** `x-api-key` becomes `X-Api-Key`: the spelling in which headers are kept and shown. */
const spelled = (name: string): string =>
  name.toLowerCase().replaceAll(/(?:^|-)[a-z]/g, (start) => start.toUpperCase());

/** The endpoint as it is kept: without a slash at its end. Where it leads to is judged elsewhere. */
export function parseEndpoint(faults: FieldFaults, text: string): URL | undefined {
  const fault = (what: string): undefined => void fieldFault(faults, "endpoint", what);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") return fault("must be an http or https URL");
  if (url.username !== "" || url.password !== "")
    return fault("must not have user information; credentials go into headers");
  if (/[?#]/.test(text)) return fault("must have neither a query nor a fragment");
  url.pathname = url.pathname.replace(/\/+$/, "");
  if (/\/v1\/(?:logs|traces|metrics)$/.test(url.pathname))
    return fault("must not end in /v1/logs, /v1/traces or /v1/metrics, which is added to it");
  return url;
}

/**
 * The headers after a change, by their usual spelling. An empty value is refused: it is what is shown of
 * a header, and whoever sends that back does not mean to lose it.
 */
export function mergeHeaders(
  faults: FieldFaults,
  kept: HeaderValues,
  patch: Readonly<Record<string, string | null>>,
): HeaderValues {
  const merged = new Map(Object.entries(kept));
  const named = new Set<string>();
  for (const [name, value] of Object.entries(patch)) {
    const field = `headers[${JSON.stringify(name)}]`;
    const key = spelled(name);
    if (!token.test(name)) fieldFault(faults, field, "is no name of a header");
    else if (named.has(key)) fieldFault(faults, field, "is named twice");
    else if (ownHeaders.has(name.toLowerCase())) fieldFault(faults, field, "is set by the exporter itself");
    else if (value === "") fieldFault(faults, field, "must have a value; null deletes a header");
    else if (value !== null && !headerValue.test(value))
      fieldFault(faults, field, "must be printable ASCII, without spaces around it");
    named.add(key);
    if (value === null) merged.delete(key);
    else merged.set(key, value);
  }
  const bytes = [...merged].reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (bytes > otlpDestinationBounds.headerBytes)
    fieldFault(faults, "headers", `must have at most ${otlpDestinationBounds.headerBytes} bytes together`);
  return Object.fromEntries(merged);
}
