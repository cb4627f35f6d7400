import { Type } from "typebox";
import { done, type Done, errorCodes, refusal, type Refusal } from "../../base/errors.js";
import type { Clock, Millis } from "../../base/clock.js";
import type { BrowserId } from "../../base/ids.js";
import { type Log, textOf } from "../../base/log.js";
import type { Secret } from "../../base/crypto/secret.js";
import type { AskCurl } from "../../pool/ports/messages.js";
import { parserOf } from "../../base/parser.js";
import { CurlReply } from "../../spec/curl.js";
import { tokenOf } from "../../base/crypto/lease-token.js";
import { Budget, type BudgetLimits } from "../../base/budget.js";
import type { NodeAddress } from "../ports.js";
import { post, type PostReply } from "./post.js";

interface AskCurlPorts {
  readonly secret: Secret;
  readonly clock: Clock;
  readonly log: Log;
  /** The limits on answers that are being read. */
  readonly limits: BudgetLimits;
  findAddress(browser: BrowserId): Promise<NodeAddress | undefined>;
  /** A node could not be reached at its address. */
  unreachable(address: NodeAddress): void;
}

const noAnswer = refusal("node_unreachable");
/** Longer than a request may take, with all that its node does before and after it. */
const answerMs: Millis = 90_000;

/**
 * Asks the gateway of the browser's node, as any holder of the lease's token can; in the same process over
 * the same way.
 */
export const makeAskCurl = ({
  secret,
  clock,
  log,
  limits,
  findAddress,
  unreachable,
}: AskCurlPorts): AskCurl => {
  const budget = new Budget(limits, "asking");
  return async (browser, body, gone) => {
    const { id, lease } = browser;
    const address = await findAddress(id);
    if (!address) return noAnswer;
    const [late, over] = [new AbortController(), new AbortController()];
    const cancel = clock.after(answerMs, () => late.abort());
    const account = budget.open(id, () => over.abort());
    try {
      const path = `/browsers/${id}/curl?token=${tokenOf(secret, id, lease.id)}`;
      const signal = AbortSignal.any([gone, late.signal, over.signal]);
      return answerOf(
        await post(address, {
          path,
          body: JSON.stringify(body),
          signal,
          kept: (bytes) => account.set(bytes),
        }),
      );
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

const errorParser = parserOf(
  "an error of a node",
  Type.Object({ code: Type.Enum(errorCodes), message: Type.String() }),
);
const replyParser = parserOf("the reply of a node", CurlReply);

/** Something else than a daemon may have answered. */
function answerOf({ status, text }: PostReply): Done<CurlReply> | Refusal {
  try {
    if (status === 200) return done(replyParser.json(text));
    const { code, message } = errorParser.json(text);
    return refusal(code, { message });
  } catch {
    return noAnswer;
  }
}
