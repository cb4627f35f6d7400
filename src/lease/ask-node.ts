import type { Clock, Millis } from "../base/clock.js";
import { type ControlId, newRequestId, type NodeId, type RequestId } from "../base/ids.js";
import type { LeasedBrowser } from "../pool/browser.js";
import type {
  ControlMessage,
  NodeReply,
  NodeMessage,
  NodeRequest,
  SendDirectly,
  Messages,
} from "../pool/ports/messages.js";

type NodeAnswer = Extract<ControlMessage, { kind: "answer" }>;

/**
 * A node has so long to answer where the question names no limit; then the caller is told that it was silent.
 */
const answerLimitMs: Millis = 5000;
/**
 * A question that Redis seems not to bring, or whose answer it does not, is asked directly as well; the node
 * carries it out once.
 */
const directAfterMs: Millis = 400;

interface AskNodePorts {
  readonly messages: Messages;
  readonly clock: Clock;
  readonly sendDirectly: SendDirectly;
}

/**
 * Questions of this control to nodes, each about one lease: asked over Redis and directly, and the first
 * answer counts.
 */
export function makeAskNode(
  control: ControlId,
  ports: AskNodePorts,
): {
  ask(browser: LeasedBrowser, what: NodeRequest, limitMs?: Millis): Promise<NodeReply>;
  answered(answer: NodeAnswer): void;
} {
  const open = new Map<RequestId, (answer: NodeReply) => void>();
  return {
    answered: ({ question, ok, payload, text, code }) =>
      open.get(question)?.(
        ok
          ? { kind: "done", ...(payload !== undefined && { payload }) }
          : { kind: "failed", ...(text !== undefined && { text }), ...(code && { code }) },
      ),
    async ask(browser, what, limitMs = answerLimitMs) {
      const question = newRequestId();
      const message: NodeMessage = {
        kind: "ask",
        question,
        control,
        browser: browser.id,
        lease: browser.lease.id,
        what,
      };
      const cancels: (() => void)[] = [];
      try {
        return await new Promise<NodeReply>((resolve, reject) => {
          open.set(question, resolve);
          cancels.push(...askBothWays(ports, { node: browser.node, message, limitMs }, { resolve, reject }));
        });
      } finally {
        for (const cancel of cancels) cancel();
        open.delete(question);
      }
    },
  };
}

interface NodeQuestion {
  readonly node: NodeId;
  readonly message: NodeMessage;
  readonly limitMs: Millis;
}

interface PendingAnswer {
  resolve(answer: NodeReply): void;
  reject(error: unknown): void;
}

/** Gives what cancels its timers. */
function askBothWays(
  ports: AskNodePorts,
  { node, message, limitMs }: NodeQuestion,
  { resolve, reject }: PendingAnswer,
): (() => void)[] {
  const { messages, clock, sendDirectly } = ports;
  let directly: Promise<NodeReply | undefined> | undefined;
  const askDirectly = async (): Promise<boolean> => {
    directly ??= sendDirectly(node, message, limitMs);
    const answer = await directly;
    if (answer) resolve(answer);
    return answer !== undefined;
  };
  messages.toNode(node, message).catch(async (error: unknown) => {
    if (!(await askDirectly())) reject(error);
  });
  return [
    clock.after(limitMs, () => resolve({ kind: "silent" })),
    clock.after(directAfterMs, () => void askDirectly()),
  ];
}
