import type { ControlId, NodeId } from "../base/ids.js";
import { textOf, type Log } from "../base/log.js";
import type { ControlMessage, NodeMessage, Wire } from "../pool/ports.js";
import { controlChannel, nodeChannel } from "./keys.js";
import type { Client, Store } from "./redis.js";

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

/** Hears the messages of one channel on a connection of its own; subscribes again by itself after a reconnect. */
export async function listenTo<Message>(
  redis: Client,
  channel: string,
  hear: { readonly onMessage: (message: Message) => void; readonly log: Log },
): Promise<{ close(): void }> {
  redis.on("error", (error: Error) => hear.log.warn({ error: error.message }, "redis subscription failed"));
  redis.on("message", (_: string, text: string) => {
    try {
      hear.onMessage(JSON.parse(text) as Message);
    } catch (error) {
      hear.log.error({ error: textOf(error), channel }, "message could not be handled");
    }
  });
  await redis.connect();
  await redis.subscribe(channel);
  return { close: () => redis.disconnect() };
}

export const listenAsNode = (redis: Client, node: NodeId, hear: { onMessage: (message: NodeMessage) => void; log: Log }): Promise<{ close(): void }> =>
  listenTo(redis, nodeChannel(node), hear);
export const listenAsControl = (
  redis: Client,
  control: ControlId,
  hear: { onMessage: (message: ControlMessage) => void; log: Log },
): Promise<{ close(): void }> => listenTo(redis, controlChannel(control), hear);
