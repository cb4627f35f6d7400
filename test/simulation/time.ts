import type { World } from "./world.js";

/** A little time, as between two requests. */
export async function pass(world: World): Promise<void> {
  const ms = world.random.between(50, 3000);
  world.note(`${ms} ms pass`);
  await world.pass(ms);
}

/** So much time that something falls due. */
export async function age(world: World): Promise<void> {
  const ms = world.random.pick([6000, 12_000, 31_000, 65_000, 130_000]) ?? 6000;
  world.note(`${ms} ms pass at once`);
  // A reservation is void after its deadline: whoever made it does not live so long.
  world.plans = [];
  await world.pass(ms);
}
