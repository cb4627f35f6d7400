import type { Clock, Millis } from "../base/clock.js";
import type { ErrorCode } from "../base/errors.js";
import { type ControlId, newRequestId, type RequestId } from "../base/ids.js";
import type { Browser } from "./browser.js";
import type { ControlMessage, NodeQuestion, Wire } from "./ports.js";

type Answer = Extract<ControlMessage, { kind: "answer" }>;

/** `text`: why it failed, for people; `code`: what that is answered as, where the node can tell whose fault it is. */
export type NodeAnswer = { readonly kind: "done" | "silent" } | { readonly kind: "failed"; readonly text?: string; readonly code?: ErrorCode };

/** A node has so long to answer where the question names no limit; then the caller is told that it was silent. */
const answerLimitMs: Millis = 5000;

/** Questions of this control to nodes, each about one lease, answered by a message. */
export function makeAskNode(control: ControlId, { wire, clock }: { wire: Wire; clock: Clock }): {
  ask(browser: Browser, what: NodeQuestion, limitMs?: Millis): Promise<NodeAnswer>;
  hear(answer: Answer): void;
} {
  const open = new Map<RequestId, (answer: NodeAnswer) => void>();
  return {
    hear: ({ question, ok, text, code }) =>
      open.get(question)?.(ok ? { kind: "done" } : { kind: "failed", ...(text !== undefined && { text }), ...(code && { code }) }),
    async ask(browser, what, limitMs = answerLimitMs) {
      const { lease } = browser;
      if (!lease) return { kind: "failed" };
      const question = newRequestId();
      let cancel = (): void => {};
      try {
        return await new Promise<NodeAnswer>((resolve, reject) => {
          open.set(question, resolve);
          cancel = clock.after(limitMs, () => resolve({ kind: "silent" }));
          wire.toNode(browser.node, { kind: "ask", question, control, browser: browser.id, lease: lease.id, what }).catch(reject);
        });
      } finally {
        cancel();
        open.delete(question);
      }
    },
  };
}
