import { type Got, send } from "../http/http-server.js";
import { readDocument } from "../http/openapi-document.js";
import { acceptedBodies } from "./accepted-bodies.js";

/** An operation of the OpenAPI document that needs a credential, at one of its paths. */
export interface Listed {
  readonly operationId: string;
  readonly method: string;
  readonly url: string;
  readonly takesParts: boolean;
}
export async function listOperations(url: string): Promise<readonly Listed[]> {
  const document = await readDocument<{ paths: Record<string, Record<string, never>> }>(url);
  const paths = Object.entries(document.paths);
  return paths
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId, security, requestBody }]) => ({
        operationId,
        method: method.toUpperCase(),
        url: path.replaceAll(/\{\w+\}/g, "mine") + (queries[operationId] ?? ""),
        takesParts: JSON.stringify(requestBody ?? "").includes("multipart"),
        isOpen: security !== undefined,
      })),
    )
    .filter(({ isOpen, operationId }) => !isOpen && operationId !== "getMetrics")
    .flatMap((listed) => [listed, ...atOlderPath(listed)]);
}

const range = "?start=2026-01-01T00:00:00Z&end=2026-01-02T00:00:00Z";
/** Queries without which a schema refuses. */
export const queries: Readonly<Record<string, string>> = {
  downloadExtensionFromChromeStore: "?url=x",
  listAuditLogs: range,
  exportAuditLogs: range,
};

/** The document says nothing of the paths of older clients (docs/projects.md#operations). */
const atOlderPath = (listed: Listed): readonly Listed[] =>
  listed.url.startsWith("/org/projects") ? [{ ...listed, url: listed.url.slice("/org".length) }] : [];

/** Asks for it as its schema wants it; an empty bearer shows nothing. */
export function askFor(
  server: string,
  { operationId, method, url, takesParts }: Listed,
  { bearer, project }: { readonly bearer: string; readonly project?: string | undefined },
): Promise<Got> {
  const body = method === "GET" || takesParts ? undefined : (acceptedBodies[operationId] ?? {});
  const headers: Record<string, string> =
    bearer === "" ? { authorization: "" } : { authorization: `Bearer ${bearer}` };
  if (project !== undefined) headers["x-kernel-project-id"] = project;
  if (takesParts) headers["content-type"] = "multipart/form-data; boundary=x";
  return send(server + url, {
    method,
    headers,
    ...(body && { body }),
    ...(takesParts && { text: "--x--\r\n" }),
  });
}
