import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Refusal } from "./say.mjs";
import { runQuietly } from "./spawn.mjs";

const most = 1000;

/** What `--repeat N FILE…` asks for, or undefined where it is not there. */
export function findRepeat(args) {
  if (args[0] !== "--repeat") return undefined;
  const times = Number(args[1]);
  const filters = args.slice(2);
  if (!Number.isInteger(times) || times < 1 || times > most || filters.length === 0) {
    throw new Refusal(`usage: npm run check -- --repeat N FILE…   (N from 1 to ${most})`);
  }
  return { times, filters };
}

/** Refuses names of no test file, each run of which would find nothing; what follows an option is not one. */
export function refuseUnknown(root, filters) {
  const options = filters.findIndex((filter) => filter.startsWith("-"));
  const names = options < 0 ? filters : filters.slice(0, options);
  const files = readdirSync(join(root, "test"), { recursive: true })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => join(root, "test", file).toLowerCase());
  const unknown = names.filter((name) => !files.some((file) => file.includes(name.toLowerCase())));
  if (unknown.length > 0) throw new Refusal(`No test file has ${unknown.join(" or ")} in its path.`);
}

/** Keeps one processor busy until it is told to stop, or this process has ended. */
function loadProcessor() {
  const child = spawn(
    process.execPath,
    [
      "-e",
      "process.stdin.resume().on('close', () => process.exit());" +
        "(function spin() { const end = Date.now() + 50; while (Date.now() < end); setImmediate(spin); })();",
    ],
    { stdio: ["pipe", "ignore", "ignore"] },
  );
  return () => child.kill("SIGKILL");
}

/**
 * Runs test files so many times beside a busy processor: what fails once is a fault of the test or of the
 * code.
 */
export async function repeatTests(root, { times, filters }) {
  refuseUnknown(root, filters);
  const stop = loadProcessor();
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  let failed = 0;
  try {
    for (let run = 1; run <= times; run += 1) {
      const { code, output } = await runQuietly(process.execPath, [vitest, "run", ...filters], { cwd: root });
      failed += code === 0 ? 0 : 1;
      console.log(code === 0 ? `run ${run}: passed` : `${output}\nrun ${run}: FAILED`);
    }
  } finally {
    stop();
  }
  console.log(`${times - failed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}
