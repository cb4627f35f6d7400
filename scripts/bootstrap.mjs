// Brings a bare machine to a running daemon or to tested sources. Plain JavaScript without packages: it runs
// before any is installed.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const usage = `usage: node scripts/bootstrap.mjs <command>

  start [--help]   start the daemon, or print every setting
  build            what start builds, without starting it
  test [filter…]   types, format and lint at once, then the tests
  check            the same at once; --repeat N FILE… runs test files N times beside a busy processor
  format           write the sources as test and check want them
  dev              start, and again on every change
  bench            the benchmarks (names of parts choose; --help lists them)
  prove:egress     every known way out of a browser, tried (--help lists its options)
  prove:isolation  everything known to reach past a browser's walls, tried (--help lists its options)
  prove:crd        the custom resource of k8s/, tried on Kubernetes's own server of such resources, which is built from Debian's sources
  prove:image      the image, built and started as each overlay of k8s/ starts it (names of overlays choose)
  prove:faults     what a sick Redis, control or node does to callers, tried and timed (file names and -t NAME choose)
  soak             minutes of churn, after which memory and latency are as before and nothing is left (--minutes N)
  audit:verify     whether the audit log is as it was sealed (--help lists its options)
  vault:rewrap     the keys of all vaults wrapped by the provider of now (--help says more)
  simulate         the randomised simulation, seed after seed, until one breaks (--help lists its options)
  settings         write the tables of docs/settings.md and docs/errors.md
  policy-table     read anew which policies the installed Chromium knows`;

/** Names the first part of Node.js's version that is too old, so that nothing obscure fails later. */
function findOldNode() {
  const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const parts = (version) => version.match(/\d+/g).map(Number);
  const [wanted, found] = [parts(engines.node), parts(process.versions.node)];
  const isOld = found[0] < wanted[0] || (found[0] === wanted[0] && found[1] < (wanted[1] ?? 0));
  return isOld
    ? `Remuda needs Node.js ${engines.node}, and this is ${process.version}: see https://nodejs.org/en/download`
    : undefined;
}

const commands = new Set([
  "start",
  "build",
  "test",
  "check",
  "format",
  "dev",
  "bench",
  "prove:egress",
  "prove:isolation",
  "prove:crd",
  "prove:image",
  "prove:faults",
  "soak",
  "audit:verify",
  "vault:rewrap",
  "simulate",
  "settings",
  "policy-table",
]);

/** These tell by themselves what they take; of the others --help prints the list, and runs nothing. */
const explained = new Set([
  "start",
  "dev",
  "bench",
  "prove:egress",
  "prove:isolation",
  "soak",
  "audit:verify",
  "vault:rewrap",
  "simulate",
]);

async function main(given) {
  const [command, ...args] = given.map((argument) => (argument === "-h" ? "--help" : argument));
  const isAsking = command === "--help" || (args.includes("--help") && !explained.has(command));
  if (isAsking || !commands.has(command)) {
    console.error(usage);
    return isAsking ? 0 : 2;
  }
  const old = findOldNode();
  if (old) {
    console.error(old);
    return 2;
  }
  const { run } = await import("./bootstrap/commands.mjs");
  return await run(command, root, args);
}

// Undefined: the daemon runs in this process and ends it.
const code = await main(process.argv.slice(2));
if (code !== undefined) process.exit(code);
