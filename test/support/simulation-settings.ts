import { randomInt } from "node:crypto";

/** The seed of the randomised test: `SIMULATION_SEED` repeats a run. */
export const simulationSeed = Number(process.env["SIMULATION_SEED"] ?? randomInt(1_000_000_000));
/** How many steps it makes: `SIMULATION_STEPS`. `npm run simulate` goes on, seed after seed. */
export const simulationSteps = Number(process.env["SIMULATION_STEPS"] ?? 4000);
