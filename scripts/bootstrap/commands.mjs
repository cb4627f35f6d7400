import { existsSync } from "node:fs";
import module from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { ensurePackages } from "./packages.mjs";
import { Refusal } from "./say.mjs";
import { runOpenly } from "./spawn.mjs";
import { ensureSystem, needsOfConfig, needsOfIsolationProof, needsOfTests } from "./system.mjs";

const built = (root, file) => pathToFileURL(join(root, "dist", "src", file)).href;

/**
 * The daemon runs in this very process: one process for signals, terminals and supervisors to deal with,
 * nothing to relay, and nothing that could outlive the other.
 */
async function start(root, args) {
  const isAsking = args.includes("--help") || args.includes("-h");
  await ensurePackages(root);
  if (!isAsking) await ensureSystem(needsOfConfig(root));
  await runMain(root, args);
}

/** Looks at what the daemon keeps, beside it or alone. */
async function verifyAudit(root, args) {
  await ensurePackages(root);
  await runMain(root, ["verify-audit", ...args]);
}

async function rewrapVaults(root, args) {
  await ensurePackages(root);
  await runMain(root, ["rewrap-vaults", ...args]);
}

async function runMain(root, args) {
  await build(root, "daemon");
  process.argv = [process.execPath, join(root, "dist/src/main.js"), ...args];
  process.setSourceMapsEnabled(true);
  await import(built(root, "main.js"));
}

/** Builds what `start` builds, without starting it; images use this. */
async function buildOnly(root) {
  await ensurePackages(root);
  await build(root, "daemon");
  return 0;
}

async function prepareTests(root, needs = needsOfTests) {
  await ensurePackages(root);
  await ensureSystem(needs);
}

async function test(root, args) {
  await prepareTests(root);
  const { runChecks } = await import("./checks.mjs");
  return await runChecks(root, { isParallel: false, args });
}

async function check(root, args) {
  await prepareTests(root);
  const { findRepeat, repeatTests } = await import("./repeat.mjs");
  const repeat = findRepeat(args);
  if (repeat) return await repeatTests(root, repeat);
  const { runChecks } = await import("./checks.mjs");
  return await runChecks(root, { isParallel: true, args });
}

async function format(root) {
  await ensurePackages(root);
  const { trackedSources } = await import("./checks.mjs");
  const oxfmt = join(root, "node_modules/oxfmt/bin/oxfmt");
  return await runOpenly(process.execPath, [oxfmt, ...trackedSources(root)], { cwd: root });
}

async function dev(root, args) {
  const { watch } = await import("./dev.mjs");
  return await watch(root, args);
}

async function bench(root, args) {
  if (!existsSync(join(root, "test/bench/main.ts")))
    throw new Refusal("There are no benchmarks yet: test/bench/main.ts is absent.");
  await runBuilt(root, { target: "bench", file: "test/bench/main.js" }, args);
}

async function proveEgress(root, args) {
  await runBuilt(root, { target: "prove", file: "test/proof/egress/prove.js" }, args);
}

async function proveIsolation(root, args) {
  await runBuilt(
    root,
    { target: "prove", file: "test/proof/isolation/prove.js", needs: needsOfIsolationProof(args) },
    args,
  );
}

async function proveCrd(root, args) {
  const needs = { required: ["bootstrap", "certificates"], optional: [] };
  await runBuilt(root, { target: "prove", file: "test/proof/crd/prove.js", needs }, args);
}

async function proveImage(root, args) {
  const needs = { required: ["images", "bootstrap", "containers", "network"], optional: [] };
  await runBuilt(root, { target: "prove", file: "test/proof/image/prove.js", needs }, args);
}

async function simulate(root, args) {
  await runBuilt(root, { target: "prove", file: "test/simulation/long.js" }, args);
}

/** Tests as all others, told as a table; arguments choose files and, with -t, names. */
async function proveFaults(root, args) {
  await prepareTests(root);
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  return await runOpenly(
    process.execPath,
    [vitest, "run", "--config", join(root, "test/faults/report/vitest.config.ts"), ...args],
    { cwd: root },
  );
}

/** Churn for so many minutes; browsers, memory and latency have to be at the end what they were. */
async function soak(root, args) {
  const [option, minutes, ...rest] = args;
  if (args.length > 0 && !(option === "--minutes" && Number(minutes) > 0 && rest.length === 0))
    throw new Refusal("usage: npm run soak -- --minutes N   (30 where it is left out)");
  await prepareTests(root);
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  return await runOpenly(
    process.execPath,
    [vitest, "run", "--config", join(root, "test/soak/vitest.config.ts")],
    { cwd: root, env: { ...process.env, SOAK_MINUTES: minutes ?? "30" } },
  );
}

/** Runs the file in this very process, as a program of its own. */
async function runBuilt(root, { target, file, needs }, args) {
  await prepareTests(root, needs);
  const directory = await build(root, target);
  process.argv = [process.execPath, join(directory, file), ...args];
  await import(pathToFileURL(process.argv[1]).href);
}

async function settings(root) {
  await ensurePackages(root);
  await build(root, "daemon");
  const { writeTables } = await import("./settings.mjs");
  const { settingsTable } = await import(built(root, "config/table.js"));
  const { errorsTable } = await import(built(root, "base/errors.js"));
  const { systemClock: clock } = await import(built(root, "base/clock.js"));
  const { Metrics } = await import(built(root, "observe/metrics.js"));
  const { metricsTable } = await import(built(root, "observe/metrics-table.js"));
  const scrape = await new Metrics({ clock, aheadMs: async () => 0 }).text();
  return writeTables(root, {
    settings: settingsTable(),
    errors: errorsTable(),
    metrics: metricsTable(scrape),
  });
}

async function policyTable(root, args) {
  const { writePolicyTable } = await import("./policy-table.mjs");
  return await writePolicyTable(root, args);
}

const commands = {
  start,
  build: buildOnly,
  test,
  check,
  format,
  dev,
  bench,
  settings,
  "policy-table": policyTable,
  "prove:egress": proveEgress,
  "prove:isolation": proveIsolation,
  "prove:crd": proveCrd,
  "prove:image": proveImage,
  "prove:faults": proveFaults,
  soak,
  "audit:verify": verifyAudit,
  "vault:rewrap": rewrapVaults,
  simulate,
};

/** Gives an exit code, or undefined where the process now is the daemon's, the benchmark's or the proof's. */
export async function run(command, root, args) {
  // Node.js 22.1 and later keep compiled code between starts.
  module.enableCompileCache?.(join(root, "node_modules/.cache/remuda-compile"));
  try {
    return await commands[command](root, args);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    console.error(error.message);
    return 1;
  }
}
