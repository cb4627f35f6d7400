import { type Partition, onDemandPartition } from "../../src/base/ids.js";
import { groupBy } from "../../src/base/group-by.js";
import { lookAfter } from "./controls.js";
import { type Caller, type Control, type FakeNode, isHeard } from "./model.js";
import { startAnew } from "./nodes.js";
import { hold } from "./shadow.js";
import { heardForMs, type World } from "./world.js";

/** Stops a control as SIGSTOP does, or continues it as SIGCONT does. */
export async function stopOrContinue(world: World): Promise<void> {
  const control = world.random.pick(world.controls);
  if (!control) return;
  control.isStopped = !control.isStopped;
  control.unheardUntil = world.now + 1;
  world.note(`control ${control.id} ${control.isStopped ? "stands still" : "goes on"}`);
  if (control.isStopped) return;
  world.isDisturbed = true;
  await world.beat();
  await lookForLost(world, control);
}

/**
 * Does what lease/waiter-recovery.ts does at each beat: callers who were taken for gone while their control
 * stood still get their places back.
 */
export async function lookForLost(world: World, control: Control | undefined): Promise<void> {
  if (!control || control.isStopped) return;
  const waiting = world.callers.filter((caller) => caller.control === control && caller.phase === "waiting");
  for (const [partition, callers] of groupBy(waiting, (caller) => caller.partition))
    await lookAt(world, partition, callers);
}

async function lookAt(world: World, partition: Partition, callers: readonly Caller[]): Promise<void> {
  const { poolStore } = world.bed;
  const standing = new Set(
    await poolStore.waitingAmong(
      partition,
      callers.map(({ waiter }) => waiter),
    ),
  );
  const others = callers.filter(({ waiter }) => !standing.has(waiter));
  if (others.length === 0) return;
  const held = new Set(
    await poolStore.heldAmong(
      partition,
      others.map(({ lease }) => lease),
    ),
  );
  for (const caller of others.filter(({ lease }) => held.has(lease))) await lookAfter(world, caller);
  for (const caller of others.filter(({ lease }) => !held.has(lease)))
    await putBack(world, partition, caller);
}

async function putBack(world: World, partition: Partition, caller: Caller): Promise<void> {
  const { poolStore, projects } = world.bed;
  const {
    stored,
    lease,
    waiter,
    ask: {
      waiter: { name },
    },
  } = caller;
  const isNamed =
    name === undefined ||
    (await projects.reserveName({ kind: "session", name, owner: lease, partition })) !== undefined;
  const [word] =
    stored !== undefined && isNamed && partition !== onDemandPartition
      ? await poolStore.rejoin(partition, [stored])
      : [];
  world.note(`${waiter} had lost its place: ${word ?? "it has to ask again"}`);
  if (word !== "waiting" && word !== "held") caller.phase = "over";
}

/** Cuts a node off from Redis without an error, so that it can not reconnect either; or ends that. */
export async function freezeOrThaw(world: World): Promise<void> {
  const node = world.random.pick(world.nodes);
  if (!node || (!node.isFrozen && world.nodes.filter(isHeard).length < 2)) return;
  if (node.isFrozen) return await thaw(world, node);
  world.note(`${node.id} does not reach Redis`);
  node.isFrozen = true;
}

/**
 * Connects a node again. Where it was taken for lost, or another has its name by now, it ends with all that
 * it has.
 */
export async function thaw(world: World, node: FakeNode): Promise<void> {
  node.isFrozen = false;
  world.isDisturbed = true;
  const { kind } = await world.bed.nodes.beat(world.factsOf(node));
  world.note(`${node.id} reaches Redis again: ${kind}`);
}

/**
 * Starts a second daemon under a node's id, as two that share a configuration file do. It is refused while
 * the first one lives.
 */
export async function clash(world: World): Promise<void> {
  const node = world.random.pick(world.nodes);
  if (!node) return;
  const facts = { ...world.factsOf(node), run: "another", origin: "another", port: 2 };
  const result = await world.bed.nodes.beat(facts);
  world.note(`another daemon is called ${node.id}: ${result.kind}`);
  await world.look();
  if (isHeard(node) && node.isNamed && world.now - world.beatenAt < heardForMs)
    hold(result.kind !== "accepted", () => `${node.id} lives, and another has taken its name`);
  // The second one waits until the first is no longer heard of.
  if (result.kind === "accepted") await startAnew(world, node);
}

/** Makes all launches of a node fail, or succeed again. */
export function sickenOrHeal(world: World): void {
  const node = world.random.pick(world.nodes);
  if (!node || (!node.isSick && world.nodes.filter(({ isSick }) => !isSick).length < 2)) return;
  node.isSick = !node.isSick;
  world.note(`${node.id} ${node.isSick ? "fails launches" : "is well"}`);
}
