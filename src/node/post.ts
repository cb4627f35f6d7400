import { type IncomingMessage, request as requestPlain, type RequestOptions } from "node:http";
import { request as requestSecure } from "node:https";
import type { NodeAddress } from "./ports.js";

export interface Posted {
  readonly status: number;
  readonly text: string;
}

export interface Posting {
  readonly path: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Told how much of the answer is held by now. */
  kept?(bytes: number): void;
}

/** A request to another daemon, in clear text or not as its address says. */
export const requestTo = ({ host, port, isSecure }: NodeAddress, options: RequestOptions) =>
  (isSecure ? requestSecure : requestPlain)({ host, port, ...(isSecure && { servername: host }), ...options });

/** Posts JSON to another daemon; the text of its answer, whatever its status. */
export const post = (to: NodeAddress, posting: Posting): Promise<Posted> =>
  new Promise((resolve, reject) => {
    const { path, body, signal } = posting;
    const headers = { ...posting.headers, "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const asking = requestTo(to, { path, method: "POST", headers, agent: false, signal });
    asking.once("response", (answer) => void readText(answer, posting).then(
      (text) => resolve({ status: answer.statusCode ?? 0, text }), reject,
    ));
    asking.once("error", reject).end(body);
  });

async function readText(answer: IncomingMessage, { signal, kept }: Posting): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (!signal.aborted) kept?.(bytes);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}
