import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../base/clock.js";
import type { NodeId } from "../../base/ids.js";
import { type Log, textOf } from "../../base/log.js";
import type { Secret } from "../../base/crypto/secret.js";
import { isSigned, sign } from "../../base/crypto/signature.js";
import {
  type NodeMessage,
  nodeMessageParser,
  type NodeReply,
  type SendDirectly,
} from "../../pool/ports/messages.js";
import { answerJson, refuseRequest } from "../refusals.js";
import { type CommandResult, commandResultParser } from "./command-result.js";
import type { NodeAddress } from "../ports.js";
import { readShort } from "../read-short.js";
import { post, type PostReply } from "./post.js";

/** A node takes messages here that Redis may not have brought it. */
const path = "/node/messages";
const signatureHeader = "x-remuda-signature";
const longestBytes = 256 * 1024;

interface DirectMessagePorts {
  readonly secret: Secret;
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined where the browser that the message names is not here. */
  receive(message: NodeMessage): Promise<CommandResult | undefined>;
}

/**
 * The way of messages to this node beside Redis: signed with the cluster secret, one to a request, the
 * outcome in the reply.
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
  const text = await readShort(request, longestBytes);
  if (text === undefined) return refuseRequest(response, { code: "body_too_large" });
  const signature = String(request.headers[signatureHeader] ?? "");
  if (!isSigned(secret, { text, signature }, clock.now()))
    return refuseRequest(response, { code: "unauthorized" });
  const outcome = await receive(nodeMessageParser.json(text));
  if (outcome) answerJson(response, outcome);
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
      const posted = address && (await postTo(ports, address, { message, signal: late.signal }));
      return posted?.status === 200 ? answerOf(commandResultParser.json(posted.text)) : undefined;
    } catch (error) {
      ports.log.debug({ node, kind: message.kind, error: textOf(error) }, "node not told directly");
      return undefined;
    } finally {
      cancel();
    }
  };

async function postTo(
  { secret, clock, unreachable }: SendPorts,
  address: NodeAddress,
  { message, signal }: { message: NodeMessage; signal: AbortSignal },
): Promise<PostReply> {
  const body = JSON.stringify(message);
  const headers = { [signatureHeader]: sign(secret, body, clock.now()) };
  try {
    return await post(address, { path, body, headers, signal });
  } catch (error) {
    unreachable(address);
    throw error;
  }
}

const answerOf = (outcome: CommandResult): NodeReply => {
  if (outcome.isDone)
    return { kind: "done", ...(outcome.payload !== undefined && { payload: outcome.payload }) };
  const { text, code } = outcome;
  return { kind: "failed", ...(text !== undefined && { text }), ...(code && { code }) };
};
