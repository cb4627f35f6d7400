import type { Clock, Millis } from "../base/clock.js";
import { type ControlId, newRequestId, type RequestId } from "../base/ids.js";
import type { Browser } from "./browser.js";
import type { ControlMessage, NodeQuestion, Wire } from "./ports.js";

type Answer = Extract<ControlMessage, { kind: "answer" }>;

/** A node has so long to answer; then the caller is told that it was silent. */
const answerLimitMs: Millis = 5000;

/** Questions of this control to nodes, each about one lease, answered by a message. */
export function makeAskNode(control: ControlId, { wire, clock }: { wire: Wire; clock: Clock }): {
  ask(browser: Browser, what: NodeQuestion): Promise<"done" | "failed" | "silent">;
  hear(answer: Answer): void;
} {
  const open = new Map<RequestId, (outcome: "done" | "failed") => void>();
  return {
    hear: ({ question, ok }) => open.get(question)?.(ok ? "done" : "failed"),
    async ask(browser, what) {
      const { lease } = browser;
      if (!lease) return "failed";
      const question = newRequestId();
      let cancel = (): void => {};
      try {
        return await new Promise<"done" | "failed" | "silent">((resolve, reject) => {
          open.set(question, resolve);
          cancel = clock.after(answerLimitMs, () => resolve("silent"));
          wire.toNode(browser.node, { kind: "ask", question, control, browser: browser.id, lease: lease.id, what }).catch(reject);
        });
      } finally {
        cancel();
        open.delete(question);
      }
    },
  };
}
