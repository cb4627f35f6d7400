import { age, pass } from "./time.js";
import { demote, detachOrFailOver } from "./failover.js";
import * as closing from "./closing.js";
import * as controls from "./controls.js";
import * as holders from "./holders.js";
import { deliver } from "./messages.js";
import * as nodes from "./nodes.js";
import * as still from "./standing-still.js";
import * as upkeep from "./upkeep.js";
import type { World } from "./world.js";

type Act = (world: World) => Promise<void> | void;

const anyCaller = (world: World, phase: "waiting" | "granted"): Parameters<typeof controls.flushReply>[1] =>
  world.random.pick(world.callers.filter((caller) => caller.phase === phase && !caller.control.isStopped));
const anyControl = (world: World): Parameters<typeof controls.undo>[1] =>
  world.random.pick(world.controls.filter(({ isStopped }) => !isStopped));
const anyPartition = (world: World): Parameters<typeof upkeep.planFill>[1] =>
  world.random.pick(world.partitions());

/** Everything that may happen, each with its weight among the others. */
const actions: readonly (readonly [number, Act])[] = [
  [16, controls.askAnything],
  [20, (world) => controls.flushReply(world, anyCaller(world, "granted"), world.random.chance(0.15))],
  [6, (world) => controls.confirm(world, anyControl(world))],
  [8, (world) => controls.undo(world, anyControl(world))],
  [5, (world) => controls.withdraw(world, anyCaller(world, "waiting"), world.random.chance(0.5))],
  [4, (world) => controls.lookAfter(world, anyCaller(world, "waiting"))],
  [0.3, controls.killControl],
  [0.4, controls.pauseOrResume],
  [0.5, still.stopOrContinue],
  [3, (world) => still.lookForLost(world, anyControl(world))],
  [12, holders.connect],
  [10, holders.openSocket],
  [6, holders.closeSocket],
  [16, holders.release],
  [5, holders.releaseLate],
  [3, holders.touch],
  [1.5, holders.vanish],
  [22, nodes.runJob],
  [18, nodes.finishLaunch],
  [25, deliver],
  [0.5, nodes.crash],
  [4, (world) => nodes.keep(world, world.random.pick(world.nodes))],
  [5, nodes.findInactive],
  [4, nodes.expire],
  [0.15, nodes.killNode],
  [0.1, nodes.restartNode],
  [0.4, still.freezeOrThaw],
  [0.2, still.clash],
  [0.2, still.sickenOrHeal],
  [0.5, closing.silence],
  [0.4, closing.answerAgain],
  [0.12, closing.drain],
  [2, (world) => closing.lookAfterDrain(world, world.random.pick(world.nodes.filter(({ drain }) => drain)))],
  [10, (world) => upkeep.planFill(world, world.pool?.partition)],
  [9, upkeep.claimPlanned],
  [6, (world) => upkeep.reapPartition(world, anyPartition(world))],
  [6, (world) => upkeep.retireLeft(world, anyPartition(world))],
  [2, upkeep.reapNode],
  [0.7, upkeep.sweep],
  [1, upkeep.recycle],
  [2, upkeep.updatePool],
  [0.3, upkeep.flush],
  [0.2, upkeep.deletePool],
  [20, upkeep.createPool],
  [1, detachOrFailOver],
  [0.1, demote],
  [5, pass],
  [0.5, age],
];
const total = actions.reduce((sum, [weight]) => sum + weight, 0);

/** The actions that make leases and open sockets for them. */
const lending: readonly Act[] = [
  controls.askAnything,
  (world) => controls.flushReply(world, anyCaller(world, "granted"), false),
  holders.connect,
  holders.openSocket,
];

export function anyAction(world: World): Act {
  if (world.lendingSteps > 0) {
    world.lendingSteps -= 1;
    return world.random.pick(lending) ?? controls.askAnything;
  }
  let left = world.random.next() * total;
  for (const [weight, act] of actions) {
    left -= weight;
    if (left < 0) return act;
  }
  return controls.askAnything;
}
