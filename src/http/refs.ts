import { RemudaError } from "../base/errors.js";
import { bounds } from "../spec/bodies.js";

const pattern = new RegExp(bounds.namePattern);

/** An id or a name out of a path. What can be neither names nothing, and never becomes part of a key. */
function parseRef(
  text: string,
  missing:
    | "pool_not_found"
    | "browser_not_found"
    | "extension_not_found"
    | "profile_not_found"
    | "otlp_destination_not_found"
    | "vault_not_found",
): string {
  if (!pattern.test(text)) throw new RemudaError(missing);
  return text;
}
export const parsePoolRef = ({ id_or_name }: { id_or_name: string }): string =>
  parseRef(id_or_name, "pool_not_found");
export const parseSessionRef = ({ id_or_name }: { id_or_name: string }): string =>
  parseRef(id_or_name, "browser_not_found");
export const parseExtensionRef = ({ id_or_name }: { id_or_name: string }): string =>
  parseRef(id_or_name, "extension_not_found");
export const parseProfileRef = ({ id_or_name }: { id_or_name: string }): string =>
  parseRef(id_or_name, "profile_not_found");
export const parseOtlpDestinationRef = ({ id_or_name }: { id_or_name: string }): string =>
  parseRef(id_or_name, "otlp_destination_not_found");
export const parseVaultRef = ({ id_or_name }: { id_or_name: string }): string =>
  parseRef(id_or_name, "vault_not_found");
