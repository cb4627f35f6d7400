import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { simulate, startServers } from "./live.js";

const usage = `npm run simulate -- [options]

  --seeds N   how many seeds, one after the other (without end)
  --from N    the first seed (any)
  --steps N   steps of each (30000)`;

/**
 * Runs the simulation of `npm test` for as long as one likes: seed after seed, until one breaks. Gives the
 * exit code.
 */
async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: "string" },
      from: { type: "string" },
      steps: { type: "string" },
      help: { type: "boolean" },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const from = Number(values.from ?? randomInt(1_000_000_000));
  const end = from + Number(values.seeds ?? Infinity);
  for (let seed = from; seed < end; seed += 1)
    if (!(await isSound(seed, Number(values.steps ?? 30_000)))) return 1;
  return 0;
}

async function isSound(seed: number, steps: number): Promise<boolean> {
  const servers = await startServers();
  const startedAt = performance.now();
  try {
    const made = await simulate(servers, { seed, steps });
    console.log(`seed ${seed}: ${made} steps in ${Math.round((performance.now() - startedAt) / 1000)} s`);
    return true;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return false;
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

process.exitCode = await main(process.argv.slice(2));
