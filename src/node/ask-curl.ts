import { type IncomingMessage, request } from "node:http";
import { done, type ErrorCode, errors, type Done, type Refusal, refusal } from "../base/errors.js";
import type { Clock, Millis } from "../base/clock.js";
import type { BrowserId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { Secret } from "../base/secret.js";
import type { AskCurl, CurlReply } from "../pool/curl.js";
import { tokenOf } from "../pool/token.js";
import type { NodeAddress } from "./ports.js";

export interface AskCurlPorts {
  readonly secret: Secret;
  readonly clock: Clock;
  readonly log: Log;
  findAddress(browser: BrowserId): Promise<NodeAddress | undefined>;
}

const noAnswer = refusal("node_unreachable");
/** Longer than a request may take, with all that its node does before and after it. */
const answerMs: Millis = 90_000;

/** Asks the gateway of the browser's node, as any holder of the lease's token can; in the same process over the same way. */
export const makeAskCurl = ({ secret, clock, log, findAddress }: AskCurlPorts): AskCurl => async (browser, body, gone) => {
  const { id, lease } = browser;
  const address = await findAddress(id);
  if (!address || !lease) return noAnswer;
  const late = new AbortController();
  const cancel = clock.after(answerMs, () => late.abort());
  try {
    const path = `/browsers/${id}/curl?token=${tokenOf(secret, id, lease.id)}`;
    return answerOf(await post({ ...address, path }, JSON.stringify(body), AbortSignal.any([gone, late.signal])));
  } catch (error) {
    log.warn({ browser: id, error: textOf(error) }, "node could not be asked");
    return late.signal.aborted ? refusal("node_silent") : noAnswer;
  } finally {
    cancel();
  }
};

interface Answer {
  readonly status: number;
  readonly text: string;
}

const post = (to: NodeAddress & { readonly path: string }, body: string, signal: AbortSignal): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const asking = request({ ...to, method: "POST", headers, agent: false, signal }, (answer) => void readText(answer).then(
      (text) => resolve({ status: answer.statusCode ?? 0, text }), reject,
    ));
    asking.once("error", reject).end(body);
  });

async function readText(answer: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of answer as AsyncIterable<Buffer>) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

function answerOf({ status, text }: Answer): Done<CurlReply> | Refusal {
  const value = JSON.parse(text) as CurlReply | { code: string; message: string };
  if (status === 200 && "headers" in value) return done(value);
  return "code" in value && Object.hasOwn(errors, value.code) ? refusal(value.code as ErrorCode, { message: value.message }) : noAnswer;
}
