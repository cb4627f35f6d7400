import { afterAll, beforeAll, expect, test } from "vitest";
import { simulationSeed, simulationSteps } from "../support/simulation-settings.js";
import { startRedis, type TestRedis } from "../support/redis.js";
import { anyAction } from "./actions.js";
import { startControl } from "./controls.js";
import { checkAll } from "./full-check.js";
import { startNode } from "./nodes.js";
import { rest } from "./rest.js";
import { World } from "./world.js";

const worlds = 6;
const stepsBetweenChecks = 250;
const stepsBetweenRests = 2000;

/** Each world has its own, which fails over and is demoted. */
let servers: readonly TestRedis[] = [];
beforeAll(async () => {
  servers = await Promise.all(Array.from({ length: worlds }, () => startRedis()));
});
afterAll(async () => {
  await Promise.all(servers.map((redis) => redis.stop()));
});

test(`${simulationSteps} random steps keep what may never happen from happening (seed ${simulationSeed})`, { timeout: 600_000 }, async () => {
  const stop = new AbortController();
  const lives = servers.map((server, index) => live(server, index, stop));
  // The others come to their end first, so that nobody is left without a Redis.
  await Promise.allSettled(lives);
  const done = await Promise.all(lives);
  expect(done.reduce((sum, steps) => sum + steps, 0)).toBeGreaterThanOrEqual(simulationSteps);
});

/** One world: everything in it happens one after the other, in an order that its seed determines. */
async function live(server: TestRedis, index: number, stop: AbortController): Promise<number> {
  const world = await World.open(server, simulationSeed * worlds + index, index);
  try {
    for (let i = 0; i < 2; i += 1) startControl(world);
    for (let i = 0; i < 3; i += 1) await startNode(world);
    while (world.steps < simulationSteps / worlds && !stop.signal.aborted) await advance(world, stop.signal);
    await rest(world);
    return world.steps;
  } catch (error) {
    stop.abort();
    const story = [`seed ${simulationSeed}, world ${index}, step ${world.steps}; the last steps:`, ...world.history].join("\n");
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${story}`, { cause: error });
  } finally {
    await world.close();
  }
}

async function advance(world: World, stopping: AbortSignal): Promise<void> {
  const restAt = world.steps + stepsBetweenRests;
  let checkAt = world.steps;
  while (world.steps < restAt && !stopping.aborted) {
    const act = anyAction(world);
    await world.step(async () => act(world));
    if (world.steps < checkAt) continue;
    checkAt += stepsBetweenChecks;
    world.callers = world.callers.filter((caller) => caller.phase !== "over");
    await checkAll(world);
  }
  world.note("rest");
  await rest(world);
}
