import { type Got, send } from "../http/http-server.js";
import { readDocument } from "../http/openapi-document.js";
import { acceptedBodies } from "./accepted-bodies.js";

/** An operation of the OpenAPI document that needs a credential. */
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
        url: path.replaceAll(/\{\w+\}/g, "mine") + (path.endsWith("from_chrome_store") ? "?url=x" : ""),
        takesParts: JSON.stringify(requestBody ?? "").includes("multipart"),
        isOpen: security !== undefined,
      })),
    )
    .filter(({ isOpen, operationId }) => !isOpen && operationId !== "getMetrics");
}

/** Asks for it as its schema wants it; an empty bearer shows nothing. */
export function askFor(
  server: string,
  { operationId, method, url, takesParts }: Listed,
  bearer: string,
): Promise<Got> {
  const body = method === "GET" || takesParts ? undefined : (acceptedBodies[operationId] ?? {});
  const headers: Record<string, string> =
    bearer === "" ? { authorization: "" } : { authorization: `Bearer ${bearer}` };
  if (takesParts) headers["content-type"] = "multipart/form-data; boundary=x";
  return send(server + url, {
    method,
    headers,
    ...(body && { body }),
    ...(takesParts && { text: "--x--\r\n" }),
  });
}
