import { chown, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Engine } from "../../src/browser/chromium.js";
import { findExecutable } from "../../src/browser/executable.js";
import { findSandbox } from "../../src/browser/isolation/sandbox.js";
import { newScratchDirectory } from "../support/killed-runs.js";
import { type CpuGroup, openCpuGroup } from "./support/cpu.js";
import type { Done, Work } from "./cycles/exchange.js";
import { apiKey, type Daemon, startDaemon } from "./support/daemon.js";
import { median } from "./support/figures.js";
import { Line } from "./support/line.js";
import { type Helper, startHelper } from "./support/processes.js";
import type { Bar, Report } from "./support/report.js";
import { inRuns } from "./support/runs.js";

const workers = 4;
const poolSize = 8;
/** Enough for the pool to be empty, as it is from then on where launches are what holds up. */
const warmup = 2 * poolSize;
const cycles = 40;
/** What Playwright gives a page of its own launch. */
const playwrightViewport = { width: 1280, height: 720 };

const kinds: readonly { engine: Engine; bar: number }[] = [
  { engine: "chromium", bar: 2 },
  { engine: "headless-shell", bar: 1.2 },
];
type Kind = (typeof kinds)[number];

/**
 * Whole clean cycles per second, all processors busy: browsers of the daemon beside those that Playwright
 * launches.
 */
export async function benchCycles({ runs }: { runs: number }): Promise<Report> {
  const site = await openCookieSite();
  const ours = await openSide("daemon");
  const theirs = await openSide("playwright");
  try {
    const daemon = await startDaemon({ ...(ours.group && { group: ours.group }) });
    ours.stops.push(() => daemon.stop());
    const place = { daemon, ours, theirs, url: site.url };
    const found: Found[] = [];
    for (const kind of kinds) found.push(await measure(place, kind, runs));
    if (site.dirty() > 0) throw new Error(`${site.dirty()} browsers had been used before`);
    return report(found);
  } finally {
    for (const side of [ours, theirs]) await side.stop();
    await site.close();
  }
}

interface CookieSite {
  readonly url: string;
  /** How often a browser came that had been here before. */
  dirty(): number;
  close(): Promise<void>;
}

async function openCookieSite(): Promise<CookieSite> {
  let dirty = 0;
  const server = createServer((request, response) => {
    if (request.headers.cookie !== undefined) dirty += 1;
    response.writeHead(200, { "content-type": "text/html", "set-cookie": "used=1; max-age=3600" });
    response.end('<!doctype html><title>page</title><link rel="icon" href="data:,"><body>hello');
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => void server.close(resolve));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, dirty: () => dirty, close };
}

/** One client process, and the group whose processor time is counted. */
interface Side {
  readonly group: CpuGroup | undefined;
  readonly stops: (() => Promise<void>)[];
  run(
    work: Omit<Work, "url" | "workers" | "warmup" | "cycles" | "usageFile"> & { url: string },
  ): Promise<Done>;
  stop(): Promise<void>;
}

/**
 * Chromium's sandbox refuses to run as root: then the clients have this uid, as the daemon's browsers have
 * theirs.
 */
const uidUnderRoot = 64_123;
const clientUid = process.getuid?.() === 0 ? uidUnderRoot : null;

async function openSide(name: string): Promise<Side> {
  const group = await openCpuGroup(name);
  const scratch = newScratchDirectory();
  const stops = [async () => await group?.close(), () => rm(scratch, { recursive: true, force: true })];
  const stop = async (): Promise<void> => {
    for (const each of stops.toReversed()) await each();
  };
  try {
    if (clientUid !== null) await chown(scratch, clientUid, clientUid);
    const client = await startClient(scratch, group);
    stops.push(() => client.stop());
    const line = await Line.open(`http://127.0.0.1:${client.said}`);
    stops.push(async () => line.close());
    return {
      group,
      stops,
      run: (work) =>
        ask(line, { ...work, workers, warmup, cycles, ...(group && { usageFile: group.usageFile }) }),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const startClient = (scratch: string, group: CpuGroup | undefined): Promise<Helper> =>
  startHelper({
    file: join(import.meta.dirname, "cycles/client.js"),
    environment: { HOME: scratch, TMPDIR: scratch },
    find: (line) => /^listening (\d+)$/.exec(line)?.[1],
    ...(group && { group }),
    ...(clientUid !== null && { uid: clientUid }),
  });

async function ask(line: Line, work: Work): Promise<Done> {
  const { status, body } = await line.post("/", JSON.stringify(work));
  if (status !== 200) throw new Error(body);
  return JSON.parse(body) as Done;
}

interface Place {
  readonly daemon: Daemon;
  readonly ours: Side;
  readonly theirs: Side;
  readonly url: string;
}
interface Pair {
  readonly lent: Done;
  readonly launched: Done;
}
interface Found {
  readonly kind: Kind;
  readonly pairs: readonly Pair[];
}

async function measure({ daemon, ours, theirs, url }: Place, kind: Kind, runs: number): Promise<Found> {
  const { engine } = kind;
  const executable = await findExecutable(engine);
  if (executable === undefined) throw new Error(`${engine} is not installed`);
  const sandbox = (await findSandbox(executable, clientUid)) !== "none";
  const pool = `bench-cycles-${engine}`;
  await daemon.createPool({
    name: pool,
    size: poolSize,
    engine,
    reset_on_release: "relaunch",
    viewport: playwrightViewport,
  });
  const lend = async (): Promise<Done> => {
    await daemon.allIdle(pool);
    const done = await ours.run({
      url,
      pids: [daemon.pid, daemon.redisPid],
      way: { kind: "lend", origin: daemon.origin, key: apiKey, pool },
    });
    await daemon.allIdle(pool);
    return done;
  };
  const launch = (): Promise<Done> =>
    theirs.run({ url, pids: [], way: { kind: "launch", executable, sandbox } });
  const pairs = await inRuns(runs, async (run) => {
    if (run % 2 === 0) return { lent: await lend(), launched: await launch() };
    const launched = await launch();
    return { lent: await lend(), launched };
  });
  await daemon.deletePool(pool);
  return { kind, pairs };
}

const perSecond = ({ tookMs }: Done): number => (cycles / tookMs) * 1000;
const millis = (seconds: number): number => (seconds / cycles) * 1000;

/** Processor time per cycle: in all, daemon, Redis, browsers with what starts them, client. */
function costs(found: readonly Done[]): string[] {
  const parts = found.map(({ groupSeconds, pidSeconds: [daemon = 0, redis = 0], clientSeconds }) => ({
    all: groupSeconds ?? Number.NaN,
    daemon,
    redis,
    browsers: (groupSeconds ?? Number.NaN) - daemon - redis - clientSeconds,
    client: clientSeconds,
  }));
  return (["all", "daemon", "redis", "browsers", "client"] as const).map((name) =>
    median(parts.map((part) => millis(part[name]))).toFixed(0),
  );
}

function rowsOf({ kind: { engine, bar }, pairs }: Found): { rows: string[][]; bar: Bar } {
  const ratios = pairs
    .map(({ lent, launched }) => perSecond(lent) / perSecond(launched))
    .toSorted((one, other) => one - other);
  const times = median(ratios);
  const isMet = times >= bar;
  const row = (name: string, found: readonly Done[]): string[] => [
    `${engine}, ${name}`,
    median(found.map(perSecond)).toFixed(1),
    ...costs(found),
  ];
  const verdict = [
    times.toFixed(2),
    `${ratios[0]?.toFixed(2)} to ${ratios.at(-1)?.toFixed(2)}`,
    isMet ? "met" : "missed",
  ];
  return {
    rows: [
      [
        ...row(
          "daemon",
          pairs.map(({ lent }) => lent),
        ),
        ...verdict,
      ],
      row(
        "Playwright",
        pairs.map(({ launched }) => launched),
      ),
    ],
    bar: { what: `cycles, ${engine}: at least ${bar} times as many`, is: `${times.toFixed(2)} times`, isMet },
  };
}

function report(found: readonly Found[]): Report {
  const parts = found.map(rowsOf);
  return {
    title:
      "Clean cycles at saturation: acquire, connectOverCDP, goto, release beside launch, newPage, goto, close",
    method: [
      `${workers} workers without a pause, Playwright on both sides, the same executables, headless, Chromium's sandbox on where the kernel allows it.`,
      `The daemon: a pool of ${poolSize}, reset_on_release "relaunch". Per run ${cycles} cycles after ${warmup} that are not counted, in which what was warm is used up.`,
      "Playwright launches with its own switches and has none of the daemon's walls: no uid, network namespace, proxy, policy or cap of a browser's own.",
      'CPU: milliseconds of processor time per cycle of all processes; "browsers" are Chromium\'s processes and whatever was run to start or end them.',
    ],
    head: [
      "",
      "cycles/s",
      "CPU ms",
      "daemon",
      "Redis",
      "browsers",
      "client",
      "times",
      "least to most",
      "bar",
    ],
    rows: parts.flatMap(({ rows }) => rows),
    bars: parts.map(({ bar }) => bar),
  };
}
