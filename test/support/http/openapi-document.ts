import { send } from "./http-server.js";

/** The OpenAPI document as it is served; throws with the answer where that is another. */
export async function readDocument<Document>(url: string): Promise<Document> {
  const { status, text, body } = await send(`${url}/openapi.json`, { headers: { authorization: "" } });
  if (status !== 200) throw new Error(`GET /openapi.json: ${status} ${text}`);
  return body as Document;
}
