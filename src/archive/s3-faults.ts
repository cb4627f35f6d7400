import { RemudaError } from "../base/errors.js";

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : "unknown");

function statusOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("$metadata" in error)) return undefined;
  const metadata = error.$metadata;
  if (typeof metadata !== "object" || metadata === null || !("httpStatusCode" in metadata)) return undefined;
  return typeof metadata.httpStatusCode === "number" ? metadata.httpStatusCode : undefined;
}

export const isNotFound = (error: unknown): boolean =>
  ["NoSuchKey", "NoSuchUpload", "NotFound"].includes(nameOf(error));
/** Some S3-compatible stores lack an operation. */
export const isNotBuilt = (error: unknown): boolean =>
  nameOf(error) === "NotImplemented" || [405, 501].includes(statusOf(error) ?? 0);

/** Only the fault's name and status: its other fields repeat what was signed, and by whom. */
export function s3Fault(error: unknown): RemudaError {
  if (error instanceof RemudaError) return error;
  if (isNotFound(error)) return new RemudaError("archive_missing");
  const status = statusOf(error);
  const said = status === undefined ? nameOf(error) : `${nameOf(error)}, ${status}`;
  return new RemudaError("store_unavailable", {
    message: `The store of archives did not do as it was asked (${said})`,
  });
}
