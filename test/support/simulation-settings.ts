/**
 * The seed of the randomised test: `SIMULATION_SEED` is another. `npm test` takes the same steps each time,
 * so that what turns red is what was changed; `npm run simulate` looks for seeds that break.
 */
export const simulationSeed = Number(process.env["SIMULATION_SEED"] ?? 1);
/** How many steps it makes: `SIMULATION_STEPS`. `npm run simulate` goes on, seed after seed. */
export const simulationSteps = Number(process.env["SIMULATION_STEPS"] ?? 12_000);
