import type { Clock, Millis } from "../base/clock.js";
import type { ControlId, NodeId, Partition } from "../base/ids.js";
import type { Log } from "../base/log.js";
import {
  type ControlMessage,
  controlMessageParser,
  type Messages,
  type NodeMessage,
  nodeHintParser,
} from "../pool/ports/messages.js";
import type { RedisClient } from "./redis/connect.js";
import { controlChannel, nodeChannel } from "./redis/keys.js";
import type { ScriptStore } from "./redis/redis.js";
import { Subscription, type SubscriptionParts } from "./redis/subscription.js";

/** Messages between roles over pub/sub: hints, never the truth. */
export class RedisMessages implements Messages {
  constructor(private readonly store: ScriptStore) {}

  async toNode(node: NodeId, message: NodeMessage): Promise<void> {
    await this.store.ask((redis) => redis.publish(nodeChannel(node), JSON.stringify(message)));
  }

  async toControl(control: ControlId, message: ControlMessage): Promise<void> {
    await this.store.ask((redis) => redis.publish(controlChannel(control), JSON.stringify(message)));
  }
}

export interface ListenerParts {
  readonly store: ScriptStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly limitMs: Millis;
  /** A client for messages alone. */
  connect(): RedisClient;
}

/** A listener and its channels. `onAgain` is called when messages may have been missed. */
type MessageListener<Message> = Pick<SubscriptionParts<Message>, "onMessage" | "onAgain">;

/** `onRegister`: nothing of the node is lent in a partition before it has registered there. */
interface NodeListener extends MessageListener<NodeMessage> {
  onRegister?(partition: Partition): void;
}

type Subscribed = Promise<{ close(): void }>;

const listenTo = <Message>(
  { channel, parse }: Pick<SubscriptionParts<Message>, "channel" | "parse">,
  { store, ...parts }: ListenerParts,
  hearing: MessageListener<Message>,
): Subscribed =>
  Subscription.open<Message>({
    ...parts,
    ...hearing,
    channel,
    parse,
    publish: (to, text) => store.ask((redis) => redis.publish(to, text)),
  });

export const listenAsNode = (
  parts: ListenerParts,
  node: NodeId,
  { onMessage, onRegister, ...hearing }: NodeListener,
): Subscribed =>
  listenTo({ channel: nodeChannel(node), parse: nodeHintParser.json }, parts, {
    ...hearing,
    onMessage: (message) =>
      message.kind === "register" ? onRegister?.(message.partition) : onMessage(message),
  });
export const listenAsControl = (
  parts: ListenerParts,
  control: ControlId,
  hearing: MessageListener<ControlMessage>,
): Subscribed =>
  listenTo({ channel: controlChannel(control), parse: controlMessageParser.json }, parts, hearing);
