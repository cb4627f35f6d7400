import { startRedis, type TestRedis } from "../support/store/redis.js";
import { anyAction } from "./actions.js";
import { startControl } from "./controls.js";
import { checkAll } from "./full-check.js";
import type { FakeNode } from "./model.js";
import { startNode } from "./nodes.js";
import { rest } from "./rest.js";
import { World } from "./world.js";

const worlds = 6;
const stepsBetweenChecks = 250;
const stepsBetweenRests = 2000;
/**
 * A world is disturbed where Redis fails over or is demoted, a node reaches it again or a stopped control
 * goes on. What that has broken shows when all has settled, before much else happens.
 */
const stepsToRest = 150;

/** Starts a Redis for each world, since a failover or a demotion concerns the whole server. */
export const startServers = (): Promise<readonly TestRedis[]> =>
  Promise.all(Array.from({ length: worlds }, () => startRedis()));

/**
 * Runs all worlds side by side for `steps` in all, and gives how many steps were taken. The first one that
 * breaks ends the others.
 */
export async function simulate(
  servers: readonly TestRedis[],
  { seed, steps }: { seed: number; steps: number },
): Promise<number> {
  const stop = new AbortController();
  const lives = servers.map((server, index) => live(server, { seed, index, steps: steps / worlds }, stop));
  // All worlds end before the first failure is thrown, so that no Redis is stopped under one that still runs.
  await Promise.allSettled(lives);
  return (await Promise.all(lives)).reduce((sum, made) => sum + made, 0);
}

interface Life {
  readonly seed: number;
  readonly index: number;
  readonly steps: number;
}

/** Runs one world. Everything in it happens one after the other, in an order that its seed determines. */
async function live(server: TestRedis, { seed, index, steps }: Life, stop: AbortController): Promise<number> {
  const world = await World.open(server, seed * worlds + index, index);
  try {
    for (let i = 0; i < 2; i += 1) startControl(world);
    for (let i = 0; i < 3; i += 1) await startNode(world);
    while (world.steps < steps && !stop.signal.aborted) await advance(world, stop.signal);
    await rest(world);
    return world.steps;
  } catch (error) {
    stop.abort();
    const story = [
      `seed ${seed}, world ${index}, step ${world.steps}; the last steps:`,
      ...world.history,
      ...world.nodes.map((node) => `${node.id}: ${describe(node)}`),
    ].join("\n");
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${story}`, { cause: error });
  } finally {
    await world.close();
  }
}

async function advance(world: World, stopping: AbortSignal): Promise<void> {
  let restAt = world.steps + stepsBetweenRests;
  let checkAt = world.steps;
  world.isDisturbed = false;
  while (world.steps < restAt && !stopping.aborted) {
    const act = anyAction(world);
    await world.step(async () => act(world));
    if (world.isDisturbed) restAt = Math.min(restAt, world.steps + stepsToRest);
    world.isDisturbed = false;
    if (world.steps < checkAt) continue;
    checkAt += stepsBetweenChecks;
    world.callers = world.callers.filter((caller) => caller.phase !== "over");
    await checkAll(world);
  }
  world.note("rest");
  await rest(world);
}

/** The node without its browsers, and how many there are. */
const describe = ({ id: _id, slots, launching, ...state }: FakeNode): string =>
  JSON.stringify({ ...state, slots: slots.size, launching: launching.size });
