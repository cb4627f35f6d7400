import type { Millis } from "../base/clock.js";
import type { Seal } from "../base/crypto/seal.js";
import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import type { BrowserId, LeaseId } from "../base/ids.js";
import type { LeasedBrowser } from "../pool/browser.js";
import type { NodeReply, NodeRequest } from "../pool/ports/messages.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import { fillOwner, type PageFillOutcome, pageFillOutcomeParser } from "../spec/page-fill.js";

interface Ports {
  readonly poolStore: Pick<PoolStore, "findBrowser">;
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

/**
 * Has the browser's node write values into a page. It is asked once: where no answer comes, what became of
 * each field is unknown.
 */
export const makeFillPage =
  ({ poolStore, seal, askNode }: Ports): FillPage =>
  async ({ browser: id, lease, order, fields, timeoutMs }) => {
    const browser = (await poolStore.findBrowser(id))?.browser;
    if (browser?.state !== "leased" || browser.lease.id !== lease) return refusal("browser_not_found");
    const sealed = seal.close(order, fillOwner(id, lease));
    const reply = await askNode(browser, { kind: "fill", sealed }, timeoutMs + besidesMs);
    switch (reply.kind) {
      case "done":
        return done(pageFillOutcomeParser.json(reply.payload ?? ""));
      case "failed":
        return refusal(reply.code ?? "browser_gone", reply.text === undefined ? {} : { message: reply.text });
      case "silent":
        return done(unknownOutcome(fields));
    }
  };

/** What a browser is to have of a vault, as its node reads it. */
type PasskeyQuestion = Pick<FillQuestion, "browser" | "lease" | "order">;
export type ChangePasskey = (question: PasskeyQuestion) => Promise<Done<null> | Refusal>;

/** Has the browser's node give it a passkey, or take it away. */
export const makeChangePasskey =
  ({ poolStore, seal, askNode }: Ports): ChangePasskey =>
  async ({ browser: id, lease, order }) => {
    const browser = (await poolStore.findBrowser(id))?.browser;
    if (browser?.state !== "leased" || browser.lease.id !== lease) return refusal("browser_not_found");
    const reply = await askNode(
      browser,
      { kind: "passkey", sealed: seal.close(order, fillOwner(id, lease)) },
      passkeyLimitMs,
    );
    switch (reply.kind) {
      case "done":
        return done(null);
      case "failed":
        return refusal(reply.code ?? "browser_gone", reply.text === undefined ? {} : { message: reply.text });
      case "silent":
        return refusal("node_silent", { retryAfterSeconds: 1 });
    }
  };
const passkeyLimitMs: Millis = 20_000;

const unknownOutcome = (fields: number): PageFillOutcome => ({
  kind: "ended",
  status: "unknown",
  fields: Array.from({ length: fields }, (_, index) => ({ index, status: "unknown", error_code: "timeout" })),
});
