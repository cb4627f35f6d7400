import { readWhole } from "../../base/read-whole.js";
import type { IncomingMessage } from "node:http";
import { finished } from "node:stream";
import { Type } from "typebox";
import { done, errorCodes, refusal, type Refusal } from "../../base/errors.js";
import type { Clock, Millis } from "../../base/clock.js";
import type { BrowserId } from "../../base/ids.js";
import { type Log, textOf } from "../../base/log.js";
import type { Secret } from "../../base/crypto/secret.js";
import type { AskCurl } from "../../pool/ports/messages.js";
import { parserOf } from "../../base/parser.js";
import { tokenOf } from "../../base/crypto/lease-token.js";
import type { NodeAddress } from "../ports.js";
import { postForAnswer } from "./post.js";

interface AskCurlPorts {
  readonly secret: Secret;
  readonly clock: Clock;
  readonly log: Log;
  findAddress(browser: BrowserId): Promise<NodeAddress | undefined>;
  /** A node could not be reached at its address. */
  unreachable(address: NodeAddress): void;
}

const noAnswer = refusal("node_unreachable");
/** Longer than a request may take, with all that its node does before and after it. */
const answerMs: Millis = 90_000;

/**
 * Asks the gateway of the browser's node, as any holder of the lease's token can; in the same process over
 * the same way. What it answers is handed on as it comes and never read here: it may be 60 MiB of JSON, for
 * each of many callers at once.
 */
export const makeAskCurl =
  ({ secret, clock, log, findAddress, unreachable }: AskCurlPorts): AskCurl =>
  async ({ id, lease }, body, { gone, request }) => {
    const address = await findAddress(id);
    if (!address) return noAnswer;
    const late = new AbortController();
    const cancel = clock.after(answerMs, () => late.abort());
    const failed = (error: unknown): void => {
      log.warn({ browser: id, error: textOf(error) }, "node could not be asked");
      if (!gone.aborted) unreachable(address);
    };
    try {
      const answer = await postForAnswer(address, {
        path: `/browsers/${id}/curl?token=${tokenOf(secret, id, lease.id)}`,
        body: JSON.stringify(body),
        headers: { "x-request-id": request },
        signal: AbortSignal.any([gone, late.signal]),
      });
      finished(answer, (error) => {
        cancel();
        // A caller who reads slowly, or no further, says nothing of the node.
        if (error && !gone.aborted && !late.signal.aborted && !answer.complete) failed(error);
      });
      return isOfDaemon(answer)
        ? done(answer)
        : refusalOf((await readWhole(answer, mostErrorBytes))?.toString() ?? "");
    } catch (error) {
      cancel();
      failed(error);
      return late.signal.aborted ? refusal("node_silent") : noAnswer;
    }
  };

/** Something else than a daemon may have answered. */
const isOfDaemon = ({ statusCode, headers }: IncomingMessage): boolean =>
  statusCode === 200 && headers["content-type"]?.startsWith("application/json") === true;

/** Several times what an error has. */
const mostErrorBytes = 64 * 1024;

const errorParser = parserOf(
  "an error of a node",
  Type.Object({ code: Type.Enum(errorCodes), message: Type.String() }),
);

function refusalOf(text: string): Refusal {
  try {
    const { code, message } = errorParser.json(text);
    return refusal(code, { message });
  } catch {
    return noAnswer;
  }
}
