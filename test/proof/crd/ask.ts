import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";

export const merge = "application/merge-patch+json";
export const apply = "application/apply-patch+yaml";
export const pools = "/apis/remuda.dev/v1alpha1/namespaces/remuda/browserpools";

export interface Answer {
  readonly status: number;
  readonly text: string;
}
export type Ask = (...asked: [method: string, path: string, body?: object, type?: string]) => Promise<Answer>;

/** Asks the server whose keys lie in a directory. */
export function askerOf(directory: string, port: number): Ask {
  const agent = new Agent({
    cert: readFileSync(join(directory, "client.crt")),
    key: readFileSync(join(directory, "client.key")),
    // Its certificate is drawn at its start; it listens on a loopback address.
    rejectUnauthorized: false,
  });
  return (...[method, path, body, type = "application/json"]) =>
    new Promise((resolve, reject) => {
      const headers = { "content-type": type };
      const asked = request({ agent, host: "127.0.0.1", port, method, path, headers }, (response) => {
        let text = "";
        response.on("data", (chunk: Buffer) => (text += chunk.toString()));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      });
      asked.setTimeout(10_000, () => asked.destroy(new Error("no answer in 10 s")));
      asked.on("error", reject);
      asked.end(body && JSON.stringify(body));
    });
}
