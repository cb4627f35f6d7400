import { randomInt } from "node:crypto";

/** The seed of the randomised test: `SIMULATION_SEED` repeats a run. */
export const simulationSeed = Number(process.env["SIMULATION_SEED"] ?? randomInt(1_000_000_000));
/** Whether Redis also fails over and loses what it has acknowledged: `SIMULATION_LOSES_WRITES=1`. Not every world comes to rest then yet. */
export const simulationLosesWrites = process.env["SIMULATION_LOSES_WRITES"] === "1";
/** How many steps it makes: `SIMULATION_STEPS`. */
export const simulationSteps = Number(process.env["SIMULATION_STEPS"] ?? 100_000);
