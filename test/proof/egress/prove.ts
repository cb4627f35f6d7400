import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { bound } from "../../support/bound.js";
import { startDns } from "../../support/egress/dns-server.js";
import { openMulticastListener } from "../../support/egress/egress-listener.js";
import { openSecureSite } from "../../support/egress/egress-secure-site.js";
import { openAllowedSite } from "../../support/egress/egress-site.js";
import {
  findOwnNetwork,
  openOwnNetwork,
  mayHaveOwnNetwork,
  type World,
} from "../../support/egress/egress-world.js";
import type { Attempt } from "./corpus/attempt.js";
import { corpus } from "./corpus/all.js";
import type { Kind } from "../arguments.js";
import type { TestNetwork, BrowserSource } from "./browser-source.js";
import { type Daemon, openGuarded, startDaemon, type Tier, type User } from "./guarded.js";
import { type Options, readOptions, usage } from "./options.js";
import { openPlain } from "./plain.js";
import { lineOf, type Part, partOf, summaryOf } from "./report.js";
import type { Outcome, Proving } from "./outcome.js";
import { runCorpus } from "./run.js";

/** Set in the process that has a network of its own. */
const within = "--within";

/** The first signal lets what is under way end and clears up; the second ends it at once. */
const stopping = new AbortController();

/** The proof as an operator runs it: `npm run prove:egress`. Gives the exit code. */
async function main(args: readonly string[]): Promise<number> {
  if (args.includes("--help")) {
    console.log(usage);
    return 0;
  }
  const options = readOptions(args.filter((arg) => arg !== within));
  if (args.includes(within)) return await prove(options, await openOwnNetwork());
  if (options.daemon === undefined && (await mayHaveOwnNetwork())) return await again(args);
  return await prove(options, findOwnNetwork(options.sinkAddress));
}

/**
 * Runs this program anew in a network namespace, where it may have any address and nothing it sends gets
 * anywhere.
 */
async function again(args: readonly string[]): Promise<number> {
  const [, script = ""] = process.argv;
  const node = [process.execPath, "--enable-source-maps", script, within, ...args];
  const [program = "", ...words] = bound("unshare", "--net", "--", ...node);
  const child = spawn(program, words, { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? 1;
}

async function prove(options: Options, world: World): Promise<number> {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort());
  const site = await openAllowedSite(world.site);
  const secure = await openSecureSite(world.site);
  const dns = await Promise.all(world.nameServers.map((address) => startDns({}, { address, port: 53 })));
  const multicast =
    world.countPackets && world.node !== undefined ? await openMulticastListener(world.node) : undefined;
  const parts = await runAll(options, {
    world,
    site,
    secure,
    dns,
    signal: stopping.signal,
    ...(multicast && { multicast }),
  }).finally(() =>
    Promise.all([site.close(), secure.close(), multicast?.close(), ...dns.map((server) => server.close())]),
  );
  if (options.json !== undefined) await writeFile(options.json, JSON.stringify(parts));
  console.log(summaryOf(parts));
  return parts.every(({ isGood }) => isGood) && !stopping.signal.aborted ? 0 : 1;
}

async function runAll(options: Options, around: Around): Promise<readonly Part[]> {
  const parts: Part[] = [];
  for (const part of partsOf(options, around))
    if (!stopping.signal.aborted) parts.push(await run(part, options, around));
  return parts;
}

/** One run of the corpus: what to call it, and what it runs against. */
interface Plan {
  readonly title: string;
  readonly isPlain: boolean;
  open(): Promise<BrowserSource>;
}

function partsOf({ control, tiers, users, kinds, daemon, log }: Options, network: TestNetwork): Plan[] {
  const started = (tier: Tier, user: User, kind: Kind): Plan =>
    guarded(`${tier}${user === "root" ? "" : " without root"}, ${nameOf(kind)}`, kind, {
      network,
      open: () => startDaemon({ tier, user, ...(log !== undefined && { logFile: log }) }, network),
    });
  return [
    ...(control && daemon === undefined ? [{ title: "no guard", isPlain: true, open: openPlain }] : []),
    ...(daemon === undefined
      ? users.flatMap((user) => tiers.flatMap((tier) => kinds.map((kind) => started(tier, user, kind))))
      : kinds.map((kind) => guarded(nameOf(kind), kind, { network, open: async () => daemon }))),
  ];
}

const nameOf = ({ engine, headless }: Kind): string =>
  engine === "chromium" ? `${headless ? "headless" : "headful"} Chromium` : engine;

const guarded = (
  title: string,
  kind: Kind,
  { network, open }: { network: TestNetwork; open(): Promise<Daemon> },
): Plan => ({
  title,
  isPlain: false,
  async open() {
    const daemon = await open();
    return { ...openGuarded(daemon, kind, network), close: () => daemon.close() };
  },
});

type Around = Omit<Proving, "source" | "isPlain">;

async function run({ title, isPlain, open }: Plan, options: Options, around: Around): Promise<Part> {
  const wanted = corpus.filter(
    ({ name }: Attempt) =>
      (options.only === undefined || name.includes(options.only)) &&
      (options.names?.has(name) ?? true) &&
      (!isPlain || (options.controlNames?.has(name) ?? true)),
  );
  console.log(`\n${title}\n${"=".repeat(title.length)}`);
  const onOutcome = (outcome: Outcome): void => {
    if (!options.isQuiet) console.log(lineOf(outcome));
  };
  try {
    const source = await open();
    const outcomes = await runCorpus(wanted, { ...around, source, isPlain, onOutcome }).finally(() =>
      source.close(),
    );
    return partOf(title, { isPlain, outcomes, corpus: wanted });
  } catch (error) {
    // No browser, or none of that kind: the others may still be proved.
    const fault = `could not be run: ${error instanceof Error ? error.message : String(error)}`;
    return { title, isPlain, outcomes: [], faults: [fault], isGood: false };
  }
}

const code = await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  return 2;
});
// A client's browser that is just being left goes with the process.
process.exit(code);
