import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock, Millis } from "../../base/clock.js";
import type { NodeId } from "../../base/ids.js";
import { type Log, textOf } from "../../base/log.js";
import type { Secret } from "../../base/crypto/secret.js";
import { isRecent, sign, signedAt } from "../../base/crypto/signature.js";
import {
  type NodeMessage,
  nodeMessageParser,
  type NodeReply,
  type SendDirectly,
} from "../../pool/ports/messages.js";
import { answerJson, refuseRequest } from "../refusals.js";
import { type CommandResult, commandResultParser } from "./command-result.js";
import type { NodeAddress } from "../ports.js";
import { readRequest } from "../../base/read-whole.js";
import { post, type PostReply } from "./post.js";

/** A node takes messages here that Redis may not have brought it. */
const path = "/node/messages";
const signatureHeader = "x-remuda-signature";
/** The header in which a node tells its time to a sender whose clock differs. */
const clockHeader = "x-remuda-clock";
/** What a node signs to tell the time: it is good for this one message. */
const clockText = (signature: string): string => `clock\n${signature}`;
/** A fill that names 32 selectors as long as they may be comes to some 530 KiB, sealed. */
const longestBytes = 1024 * 1024;

interface DirectMessagePorts {
  readonly secret: Secret;
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined where the browser that the message names is not here. */
  receive(message: NodeMessage): Promise<CommandResult | undefined>;
}

/**
 * The way of messages to this node beside Redis: signed with the cluster secret, one to a request, the
 * outcome in the reply. One that was signed long ago by the clock of this node may have been kept by somebody
 * who sends it again, and is not heard; the reply tells the time here, for that message and with the secret,
 * so that a sender with another clock can sign it anew (DECISIONS.md#189).
 */
export const makeDirectMessages = (ports: DirectMessagePorts) => ({
  /** Returns false, and does nothing, where the path is not ours. */
  request(request: IncomingMessage, response: ServerResponse): boolean {
    if (request.url !== path || request.method !== "POST") return false;
    answer(ports, request, response).catch((error: unknown) => {
      ports.log.warn({ error: textOf(error) }, "direct message not carried out");
      refuseRequest(response, { code: "unavailable" });
    });
    return true;
  },
});

async function answer(
  { secret, clock, receive }: DirectMessagePorts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const text = (await readRequest(request, longestBytes))?.toString();
  if (text === undefined) return refuseRequest(response, { code: "body_too_large" });
  const signature = String(request.headers[signatureHeader] ?? "");
  const [at, now] = [signedAt(secret, { text, signature }), clock.now()];
  if (at === undefined) return refuseRequest(response, { code: "unauthorized" });
  if (!isRecent(at, now)) {
    response.setHeader(clockHeader, sign(secret, clockText(signature), now));
    return refuseRequest(response, { code: "unauthorized", message: "It was signed at another time" });
  }
  const commandResult = await receive(nodeMessageParser.json(text));
  if (commandResult) answerJson(response, commandResult);
  else refuseRequest(response, { code: "browser_not_found" });
}

interface SendPorts extends Pick<DirectMessagePorts, "secret" | "clock" | "log"> {
  findNode(node: NodeId): Promise<NodeAddress | undefined>;
  /** The node took no connection, or did not answer in time. */
  unreachable(address: NodeAddress): void;
}

/**
 * Tells a node a message over HTTP. Never throws: undefined where it could not be reached in time, or has no
 * such browser.
 */
export const makeSendDirectly =
  (ports: SendPorts): SendDirectly =>
  async (node, message, limitMs) => {
    const late = new AbortController();
    const cancel = ports.clock.after(limitMs, () => late.abort());
    try {
      const address = await ports.findNode(node);
      const posted = address && (await postTo(ports, { node, address }, { message, signal: late.signal }));
      return posted?.status === 200 ? answerOf(commandResultParser.json(posted.text)) : undefined;
    } catch (error) {
      ports.log.debug({ node, kind: message.kind, error: textOf(error) }, "node not told directly");
      return undefined;
    } finally {
      cancel();
    }
  };

async function postTo(
  ports: SendPorts,
  { node, address }: { node: NodeId; address: NodeAddress },
  { message, signal }: { message: NodeMessage; signal: AbortSignal },
): Promise<PostReply> {
  const body = JSON.stringify(message);
  const now = ports.clock.now();
  const first = await postSigned(ports, address, { body, at: now, signal });
  if (first.nodeNow === undefined) return first.reply;
  ports.log.warn({ node, aheadMs: first.nodeNow - now }, "clock of a node differs from the control's");
  return (await postSigned(ports, address, { body, at: first.nodeNow, signal })).reply;
}

/** `nodeNow`: the node would hear it, had it been signed at this time, which is its own. */
async function postSigned(
  { secret, unreachable }: SendPorts,
  address: NodeAddress,
  { body, at, signal }: { body: string; at: Millis; signal: AbortSignal },
): Promise<{ reply: PostReply; nodeNow: Millis | undefined }> {
  const signature = sign(secret, body, at);
  try {
    const reply = await post(address, { path, body, headers: { [signatureHeader]: signature }, signal });
    const told = String(reply.headers[clockHeader] ?? "");
    return { reply, nodeNow: signedAt(secret, { text: clockText(signature), signature: told }) };
  } catch (error) {
    unreachable(address);
    throw error;
  }
}

const answerOf = (commandResult: CommandResult): NodeReply => {
  if (commandResult.isDone)
    return { kind: "done", ...(commandResult.payload !== undefined && { payload: commandResult.payload }) };
  const { text, code } = commandResult;
  return { kind: "failed", ...(text !== undefined && { text }), ...(code && { code }) };
};
