import { type IncomingMessage, request } from "node:http";
import { done, type ErrorCode, errors, type Done, type Refusal, refusal } from "../base/errors.js";
import type { Clock, Millis } from "../base/clock.js";
import type { BrowserId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { Secret } from "../base/secret.js";
import type { AskCurl, CurlReply } from "../pool/curl.js";
import { tokenOf } from "../pool/token.js";
import { Budget, type BudgetLimits } from "../base/budget.js";
import type { NodeAddress } from "./ports.js";

export interface AskCurlPorts {
  readonly secret: Secret;
  readonly clock: Clock;
  readonly log: Log;
  /** Of answers that are being read. */
  readonly limits: BudgetLimits;
  findAddress(browser: BrowserId): Promise<NodeAddress | undefined>;
  /** A node could not be reached at its address. */
  unreachable(address: NodeAddress): void;
}

const noAnswer = refusal("node_unreachable");
/** Longer than a request may take, with all that its node does before and after it. */
const answerMs: Millis = 90_000;

/** Asks the gateway of the browser's node, as any holder of the lease's token can; in the same process over the same way. */
export const makeAskCurl = ({ secret, clock, log, limits, findAddress, unreachable }: AskCurlPorts): AskCurl => {
  const budget = new Budget(limits, "asking");
  return async (browser, body, gone) => {
    const { id, lease } = browser;
    const address = await findAddress(id);
    if (!address || !lease) return noAnswer;
    const [late, over] = [new AbortController(), new AbortController()];
    const cancel = clock.after(answerMs, () => late.abort());
    const account = budget.open(id, () => over.abort());
    try {
      const path = `/browsers/${id}/curl?token=${tokenOf(secret, id, lease.id)}`;
      const signal = AbortSignal.any([gone, late.signal, over.signal]);
      return answerOf(await post({ ...address, path }, JSON.stringify(body), { signal, kept: (bytes) => account.set(bytes) }));
    } catch (error) {
      if (over.signal.aborted) return refusal("too_many_requests");
      log.warn({ browser: id, error: textOf(error) }, "node could not be asked");
      if (!gone.aborted) unreachable(address);
      return late.signal.aborted ? refusal("node_silent") : noAnswer;
    } finally {
      cancel();
      account.close();
    }
  };
};

interface Answer {
  readonly status: number;
  readonly text: string;
}

interface Reading {
  readonly signal: AbortSignal;
  /** Told how much is held by now. */
  kept(bytes: number): void;
}

const post = (to: NodeAddress & { readonly path: string }, body: string, reading: Reading): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const options = { ...to, method: "POST", headers, agent: false, signal: reading.signal };
    const asking = request(options, (answer) => void readText(answer, reading).then(
      (text) => resolve({ status: answer.statusCode ?? 0, text }), reject,
    ));
    asking.once("error", reject).end(body);
  });

async function readText(answer: IncomingMessage, { signal, kept }: Reading): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (!signal.aborted) kept(bytes);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

function answerOf({ status, text }: Answer): Done<CurlReply> | Refusal {
  const value = JSON.parse(text) as CurlReply | { code: string; message: string };
  if (status === 200 && "headers" in value) return done(value);
  return "code" in value && Object.hasOwn(errors, value.code) ? refusal(value.code as ErrorCode, { message: value.message }) : noAnswer;
}
