import type { Millis } from "../base/clock.js";
import type { Seal } from "../base/crypto/seal.js";
import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import { type BrowserId, type LeaseId, newRequestId, partitionOf } from "../base/ids.js";
import type { LeasedBrowser } from "../pool/browser.js";
import type { NodeReply, NodeRequest } from "../pool/ports/messages.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import { fillOwner, type PageFillOutcome, pageFillOutcomeParser } from "../spec/page-fill.js";

interface FillPagePorts {
  readonly poolStore: Pick<PoolStore, "touch">;
  /** Whoever can put messages into Redis has nothing filled by that. */
  readonly seal: Pick<Seal, "close">;
  askNode(browser: LeasedBrowser, what: NodeRequest, limitMs?: Millis): Promise<NodeReply>;
}

/** A fill of one lease's page, as its node reads it. */
interface FillQuestion {
  readonly browser: BrowserId;
  readonly lease: LeaseId;
  readonly order: string;
  readonly fields: number;
  readonly timeoutMs: Millis;
}
export type FillPage = (question: FillQuestion) => Promise<Done<PageFillOutcome> | Refusal>;

/** What the way to the node and back, and the opening of values there, may take beside the fill itself. */
const besidesMs: Millis = 5000;
const passkeyLimitMs: Millis = 20_000;

/**
 * Has the browser's node write values into a page. It is asked once: where no answer comes, what became of
 * each field is unknown.
 */
export const makeFillPage =
  (ports: FillPagePorts): FillPage =>
  async (question) => {
    const limitMs = question.timeoutMs + besidesMs;
    const reply = await askNodeOf(ports, question, { kind: "fill", limitMs });
    switch (reply.kind) {
      case "refused":
        return reply;
      case "done":
        return done(pageFillOutcomeParser.json(reply.payload ?? ""));
      case "silent":
        return done(unknownOutcome(question.fields));
    }
  };

/** What a browser is to have of a vault, as its node reads it. */
type PasskeyQuestion = Pick<FillQuestion, "browser" | "lease" | "order">;
export type ChangePasskey = (question: PasskeyQuestion) => Promise<Done<null> | Refusal>;

/** Has the browser's node give it a passkey, or take it away. */
export const makeChangePasskey =
  (ports: FillPagePorts): ChangePasskey =>
  async (question) => {
    const reply = await askNodeOf(ports, question, { kind: "passkey", limitMs: passkeyLimitMs });
    switch (reply.kind) {
      case "refused":
        return reply;
      case "done":
        return done(null);
      case "silent":
        return refusal("node_silent", { retryAfterSeconds: 1 });
    }
  };

/**
 * Asks the node of a browser that the lease still has, once, with the order sealed for both. The lease says
 * before that the browser is touched: its release then cuts what is under way, and resets the browser, also
 * where no client has ever come.
 */
async function askNodeOf(
  { poolStore, seal, askNode }: FillPagePorts,
  { browser, lease, order }: PasskeyQuestion,
  { kind, limitMs }: { readonly kind: "fill" | "passkey"; readonly limitMs: Millis },
): Promise<Exclude<NodeReply, { kind: "failed" }> | Refusal> {
  const change = { set: {}, clear: [], touched: true };
  const ask = { browser, lease, change, request: newRequestId() };
  const found = await poolStore.touch(partitionOf(browser), ask);
  if (found.kind !== "touched") return refusal("browser_not_found");
  const sealed = seal.close(order, fillOwner(browser, lease));
  const reply = await askNode(found.browser, { kind, sealed }, limitMs);
  if (reply.kind !== "failed") return reply;
  return refusal(reply.code ?? "browser_gone", reply.text === undefined ? {} : { message: reply.text });
}

const unknownOutcome = (fields: number): PageFillOutcome => ({
  kind: "ended",
  status: "unknown",
  fields: Array.from({ length: fields }, (_, index) => ({ index, status: "unknown", error_code: "timeout" })),
});
