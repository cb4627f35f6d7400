import { createHash } from "node:crypto";
import { request as httpRequest } from "node:http";
import { key, type TestServer } from "./http-server.js";
import { field, file, multipartType, type SentPart } from "./multipart-body.js";

/** Where extensions are uploaded into the session `mine`. */
export const uploadPath = "/browsers/mine/extensions";

export interface UploadReply {
  readonly status: number | undefined;
  readonly headers: Record<string, unknown>;
  readonly text: string;
}

/** Sends the chunks one by one, each a write of its own. */
export function upload(
  server: TestServer,
  chunks: readonly Buffer[],
  type = multipartType,
): Promise<UploadReply> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      `${server.url}${uploadPath}`,
      { method: "POST", headers: { "content-type": type, authorization: `Bearer ${key}` } },
      (reply) => {
        let text = "";
        reply
          .on("data", (chunk: Buffer) => (text += chunk.toString()))
          .on("end", () => resolve({ status: reply.statusCode, headers: reply.headers, text }));
      },
    );
    sent.on("error", reject);
    for (const chunk of chunks) sent.write(chunk);
    sent.end();
  });
}

/** So many extensions, each with a name and a file. */
export const many = (count: number): SentPart[] =>
  Array.from({ length: count }, (_, at) => [
    field(`extensions[${at}][name]`, `e${at}`),
    file(`extensions[${at}][zip_file]`, "zip"),
  ]).flat();

/** What `RecordedOperations` keeps of such bytes. */
export const digestOf = (bytes: string | Buffer): string => createHash("sha256").update(bytes).digest("hex");
