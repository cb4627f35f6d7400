import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestRedis } from "../support/store/redis.js";
import { simulationSeed, simulationSteps } from "../support/simulation-settings.js";
import { simulate, startServers } from "./live.js";

let servers: readonly TestRedis[] = [];
beforeAll(async () => {
  servers = await startServers();
});
afterAll(async () => {
  await Promise.all(servers.map((redis) => redis.stop()));
});

test(
  `${simulationSteps} random steps keep what may never happen from happening (seed ${simulationSeed})`,
  { timeout: 600_000 },
  async () => {
    expect(await simulate(servers, { seed: simulationSeed, steps: simulationSteps })).toBeGreaterThanOrEqual(
      simulationSteps,
    );
  },
);
