import { type NodeId, type Partition, partitionOf } from "../../src/base/ids.js";
import { leasedParser } from "../../src/pool/browser.js";
import type { ControlMessage, NodeMessage } from "../../src/pool/ports/messages.js";
import { cut } from "./begin.js";
import { register } from "./epochs.js";
import { launchAgain, served } from "./controls.js";
import { receiveAsNode } from "./nodes.js";
import type { World } from "./world.js";

/** Delivers a message between roles, or loses it. */
export async function deliver(world: World): Promise<void> {
  const { random } = world;
  if (world.inbox.length === 0) await world.collect();
  // Some messages arrive a second time, so late that much has overtaken them.
  const heard = world.fails(0.15) ? random.pick(world.heard) : random.take(world.inbox);
  if (!heard) return;
  if (isForStopped(world, heard.channel)) return void world.inbox.push(heard);
  if (world.fails(0.2)) return;
  if (heard.message.kind === "fence") world.heard = [...world.heard.slice(-20), heard];
  if (heard.channel.startsWith("remuda:node:"))
    return await toNode(
      world,
      heard.channel.slice("remuda:node:".length),
      heard.message as unknown as NodeMessage,
    );
  await toControl(
    world,
    heard.channel.slice("remuda:control:".length),
    heard.message as unknown as ControlMessage,
  );
}

/** Messages to a stopped process wait in its socket. */
const isForStopped = (world: World, channel: string): boolean =>
  world.controls.some(({ id, isStopped }) => isStopped && channel === `remuda:control:${id}`);

type RegisterMessage = { readonly kind: "register"; readonly partition: Partition };

async function toNode(world: World, id: string, message: NodeMessage | RegisterMessage): Promise<void> {
  const node = receiveAsNode(world, id as NodeId);
  if (message.kind === "register") return await (node && register(world, node, message.partition));
  const slot = node?.slots.get(message.browser);
  if (!slot) return;
  if (message.kind === "cut") await cut(slot, message.lease);
  if (message.kind !== "fence") return;
  world.note(`fence ${message.lease} ${message.claim}`);
  await cut(slot, message.lease);
  if (message.mode === "none") await world.bed.reports.freed(message.browser, message.claim);
}

async function toControl(world: World, id: string, message: ControlMessage): Promise<void> {
  if (message.kind === "answer") return;
  const caller = world.callers.find(({ connection }) => connection === message.connection);
  if (caller?.phase !== "waiting" && message.kind === "granted") return unwanted(world, id, message);
  if (caller?.phase !== "waiting" || !caller.control.isAlive) return;
  if (message.kind === "granted") return served(world, caller, leasedParser.json(message.browser));
  if (message.kind === "failed") return await launchAgain(world, caller);
  caller.phase = "over";
}

/**
 * Does what lease/grants.ts does with a grant that nobody waits for: a failover has brought back a place that
 * was given up.
 */
function unwanted(
  world: World,
  to: string,
  { connection, browser }: Extract<ControlMessage, { kind: "granted" }>,
): void {
  const { id, lease } = leasedParser.json(browser);
  const control = world.controls.find((one) => one.id === to);
  if (!control?.isAlive || world.told.get(lease.id) === id) return;
  world.note(`nobody waits at ${connection} for ${lease.id}`);
  world.told.set(lease.id, id);
  control.lost.push({ partition: partitionOf(id), lease: lease.id });
}
