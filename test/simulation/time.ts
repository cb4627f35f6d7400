import type { World } from "./world.js";

/** Lets a little time pass, as between two requests. */
export async function pass(world: World): Promise<void> {
  const ms = world.random.between(50, 3000);
  world.note(`${ms} ms pass`);
  await world.pass(ms);
}

/** Lets so much time pass that something falls due. */
export async function age(world: World): Promise<void> {
  const ms = world.random.pick([6000, 12_000, 31_000, 65_000, 130_000]) ?? 6000;
  world.note(`${ms} ms pass at once`);
  // Reservations are void after their deadline; whoever made one does not wait that long.
  world.plans = [];
  await world.pass(ms);
}
