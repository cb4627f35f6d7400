import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestPlain,
  type RequestOptions,
} from "node:http";
import { request as requestSecure } from "node:https";
import { isIP } from "node:net";
import { text } from "node:stream/consumers";
import type { Clock, Millis } from "../../base/clock.js";
import type { NodeAddress } from "../ports.js";

export interface PostReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface PostRequest {
  readonly path: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * Whom TLS has to meet: an address is no server name (RFC 6066, 3), and the Host header of what is sent on is
 * somebody else's.
 */
export const tlsTo = ({ host, port }: NodeAddress) => ({
  host,
  port,
  servername: isIP(host) === 0 ? host : "",
});

/** A request to another daemon, in clear text or not as its address says. */
export const requestTo = (to: NodeAddress, options: RequestOptions) =>
  to.isSecure
    ? requestSecure({ ...options, ...tlsTo(to) })
    : requestPlain({ ...options, host: to.host, port: to.port });

/** Posts JSON to another daemon; its answer as it begins, whatever its status. */
export const postForAnswer = (to: NodeAddress, { path, body, ...posting }: PostRequest) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    const headers = {
      ...posting.headers,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    };
    const { signal } = posting;
    const asking = requestTo(to, { path, method: "POST", headers, agent: false, signal });
    asking.once("response", resolve).on("error", reject).end(body);
  });

/** The text of the answer too. */
export async function post(to: NodeAddress, posting: PostRequest): Promise<PostReply> {
  const answer = await postForAnswer(to, posting);
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: await text(answer) };
}

/** What this process lacks to ask anybody, which says nothing of whoever is asked. */
const ownLack = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRNOTAVAIL", "EAGAIN"]);

/**
 * Whether the server of a node answers within a limit, whatever it says; undefined where it was not asked.
 */
export const isReachable = (
  node: NodeAddress,
  { clock, limitMs }: { clock: Clock; limitMs: Millis },
): Promise<boolean | undefined> =>
  new Promise((resolve) => {
    const asking = requestTo(node, { path: "/healthz", agent: false });
    const cancel = clock.after(limitMs, () => settle(false));
    const settle = (isAnswered: boolean | undefined): void => {
      cancel();
      asking.destroy();
      resolve(isAnswered);
    };
    asking
      .once("response", () => settle(true))
      .on("error", ({ code = "" }: NodeJS.ErrnoException) => settle(ownLack.has(code) ? undefined : false))
      .end();
  });
