import type { Clock, Millis } from "../base/clock.js";
import type { ControlId, NodeId } from "../base/ids.js";
import type { Log } from "../base/log.js";
import type { ControlMessage, NodeMessage, Wire } from "../pool/ports/messages.js";
import type { Client } from "./redis/connect.js";
import { controlChannel, nodeChannel } from "./redis/keys.js";
import type { Store } from "./redis/redis.js";
import { Subscription, type SubscriptionParts } from "./redis/subscription.js";

/** Messages between roles over pub/sub: hints, never the truth. */
export class RedisWire implements Wire {
  constructor(private readonly store: Store) {}

  async toNode(node: NodeId, message: NodeMessage): Promise<void> {
    await this.store.ask((redis) => redis.publish(nodeChannel(node), JSON.stringify(message)));
  }

  async toControl(control: ControlId, message: ControlMessage): Promise<void> {
    await this.store.ask((redis) => redis.publish(controlChannel(control), JSON.stringify(message)));
  }
}

export interface EarParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly limitMs: Millis;
  /** A client for messages alone. */
  connect(): Client;
}

/** Who listens, and to what. `onAgain`: something may have been missed. */
export type Hearing<Message> = Pick<SubscriptionParts<Message>, "onMessage" | "onAgain">;

type Ears = Promise<{ close(): void }>;

const listenTo = <Message>(channel: string, { store, ...parts }: EarParts, hearing: Hearing<Message>): Ears =>
  Subscription.open<Message>({
    ...parts, ...hearing, channel, publish: (to, text) => store.ask((redis) => redis.publish(to, text)),
  });

export const listenAsNode = (parts: EarParts, node: NodeId, hearing: Hearing<NodeMessage>): Ears =>
  listenTo(nodeChannel(node), parts, hearing);
export const listenAsControl = (parts: EarParts, control: ControlId, hearing: Hearing<ControlMessage>): Ears =>
  listenTo(controlChannel(control), parts, hearing);
