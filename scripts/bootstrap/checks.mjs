import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { say } from "./say.mjs";
import { runOpenly, runQuietly } from "./spawn.mjs";

const counted = (isGood) => (isGood ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 });

const node = (script, ...args) => [process.execPath, [script, ...args]];

const folders = ["src", "test", "scripts", "vitest.config.ts"];

/** The tracked files of these folders; undefined where there is no repository, as in an archive of a release. */
function findTracked(root) {
  const listed = spawnSync("git", ["ls-files", "-z", "--", ...folders], { cwd: root, encoding: "utf8" });
  if (listed.status !== 0) return undefined;
  // A file that was removed and not yet committed is listed still.
  const files = listed.stdout.split("\0").filter((path) => path !== "" && existsSync(join(root, path)));
  return files.length > 0 ? files : undefined;
}

/**
 * The tracked sources: what a user tries beside them, such as the README's script, is nobody's fault. Where there is
 * no repository, all of the folders.
 */
export const trackedSources = (root) =>
  findTracked(root)?.filter((path) => /\.m?[jt]s$/.test(path)) ?? folders;

/** Steps that run in parallel keep their output and print it whole, so that it does not mix. */
async function runStep([program, args], { root, isParallel, env = process.env }) {
  if (!isParallel) return await runOpenly(program, args, { cwd: root, env });
  const { code, output } = await runQuietly(program, args, { cwd: root, env });
  if (output.trim() !== "") console.log(output.trim());
  return code;
}

/**
 * The compiler ends soon: where it frees nothing below this limit it takes 1.8 GB instead of 1.7, and a third less
 * of the processors (TypeScript 7.0, 2 cores).
 */
const freeLate = { GOGC: "off", GOMEMLIMIT: "3GiB" };

/** A project of the tracked files, with the options of the root's; the root's own where there is no repository. */
function writeProject(root, directory) {
  const tracked = findTracked(root)?.filter((path) => path.endsWith(".ts"));
  if (tracked === undefined) return root;
  const project = join(directory, "tsconfig.json");
  const compilerOptions = { rootDir: root, typeRoots: [join(root, "node_modules/@types")] };
  const files = tracked.map((path) => join(root, path));
  const settings = { extends: join(root, "tsconfig.json"), compilerOptions, include: [], files };
  writeFileSync(project, JSON.stringify(settings));
  return project;
}

export async function checkTypes(step) {
  say("types (tsc)");
  const directory = mkdtempSync(join(tmpdir(), "remuda-types-"));
  try {
    const project = writeProject(step.root, directory);
    const tsc = node(join(step.root, "node_modules/typescript/bin/tsc"), "-p", project);
    return counted((await runStep(tsc, { ...step, env: { ...process.env, ...freeLate } })) === 0);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function format(step) {
  say("format (oxfmt)");
  const oxfmt = join(step.root, "node_modules/oxfmt/bin/oxfmt");
  return counted((await runStep(node(oxfmt, "--check", ...trackedSources(step.root)), step)) === 0);
}

async function lint(step) {
  say("lint (oxlint)");
  const oxlint = join(step.root, "node_modules/oxlint/bin/oxlint");
  return counted((await runStep(node(oxlint, "--deny-warnings", ...trackedSources(step.root)), step)) === 0);
}

/** Counts of vitest's JSON report; a file that could not even be loaded counts as one failure. */
export function countTests(report, code) {
  const broken = report.testResults.filter(
    (file) => file.status === "failed" && file.assertionResults.length === 0,
  ).length;
  const failed = report.numFailedTests + broken;
  // A leaked handle or an error outside of any test fails the run without failing a test.
  return { passed: report.numPassedTests, failed: code !== 0 && failed === 0 ? 1 : failed };
}

const slowestToTell = 10;

/** Those worth looking at where the tests take too long. */
function tellSlowest(root, { testResults }) {
  const files = testResults.map(({ name, startTime, endTime }) => ({
    name: relative(root, name),
    seconds: (endTime - startTime) / 1000,
  }));
  const slowest = files.sort((one, other) => other.seconds - one.seconds).slice(0, slowestToTell);
  console.log(
    [
      "The slowest files:",
      ...slowest.map(({ name, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${name}`),
    ].join("\n"),
  );
}

async function tests(step, filters) {
  say("tests (vitest)");
  const directory = mkdtempSync(join(tmpdir(), "remuda-test-report-"));
  const file = join(directory, "report.json");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
  try {
    const vitest = join(step.root, "node_modules/vitest/vitest.mjs");
    const code = await runStep(node(vitest, "run", ...reporters, ...filters), step);
    const report = JSON.parse(readFileSync(file, "utf8"));
    tellSlowest(step.root, report);
    return countTests(report, code);
  } catch (error) {
    console.error(`The tests left no report: ${error.message}`);
    return { passed: 0, failed: 1 };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Tests have the machine to themselves, but where all is to run at once. */
async function runAll(step, args) {
  const alongside = { ...step, isParallel: true };
  const quick = Promise.all([checkTypes(alongside), format(alongside), lint(alongside)]);
  if (!step.isParallel) await quick;
  return [await tests(step, args), ...(await quick)];
}

/**
 * Types, format, lint and tests; the last line tells how many passed and failed, the first three as one each.
 */
export async function runChecks(root, { isParallel, args }) {
  const results = await runAll({ root, isParallel }, args);
  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  console.log(`${sum("passed")} passed, ${sum("failed")} failed`);
  return sum("failed") === 0 ? 0 : 1;
}
