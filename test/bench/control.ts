import { once } from "node:events";
import { WebSocket } from "ws";
import { controlReport } from "./control-report.js";
import { type Daemon, startDaemon } from "./support/daemon.js";
import { type Floor, startFloor } from "./floor.js";
import { makeLightChromium } from "./support/light-chromium.js";
import { costOf, type ProcessorTime } from "./support/cpu.js";
import type { Line } from "./support/line.js";
import { type Lease, runCycles, runSteps, type Sample, type Side } from "./support/load.js";
import type { Report } from "./support/report.js";
import { inRuns, inTurn, times } from "./support/runs.js";

const clientCounts = [1, 8, 32] as const;
/** So that no acquire waits. */
const browsersPerClient = 4;

export type Kind = "no client" | "a client";
/** One measurement of both, one after the other. */
export interface Pair {
  readonly kind: Kind;
  readonly clients: number;
  readonly daemon: Sample;
  readonly floor: Sample;
  readonly used: ProcessorTime;
}
type Wanted = Pick<Pair, "kind" | "clients">;
interface Servers {
  readonly daemon: Daemon;
  readonly floor: Floor;
}

/** Acquire and release of the daemon with light fake browsers, beside the floor. */
export async function benchControl({ runs, sampleMs }: { runs: number; sampleMs: number }): Promise<Report> {
  const fake = await makeLightChromium();
  const floor = await startFloor();
  const daemon = await startDaemon({ executable: fake.executable });
  try {
    for (const clients of clientCounts)
      await daemon.createPool({ name: poolOf(clients), size: clients * browsersPerClient });
    const wanted = clientCounts.flatMap((clients) =>
      (["no client", "a client"] as const).map((kind) => ({ clients, kind })),
    );
    const found = await inRuns(runs, (run) =>
      inTurn(wanted, (each) => measure({ daemon, floor }, each, { sampleMs, isSwapped: run % 2 === 1 })),
    );
    return controlReport(found.flat());
  } finally {
    await daemon.stop();
    await floor.stop();
    await fake.remove();
  }
}

const poolOf = (clients: number): string => `bench-${clients}`;

async function measure(
  { daemon, floor }: Servers,
  wanted: Wanted,
  { sampleMs, isSwapped }: { sampleMs: number; isSwapped: boolean },
): Promise<Pair> {
  const { clients } = wanted;
  const path = `/browser_pools/${poolOf(clients)}`;
  const ofDaemon: Side = {
    lines: await openLines(clients, daemon),
    acquirePath: `${path}/acquire`,
    releasePath: `${path}/release`,
  };
  const ofFloor: Side = {
    lines: await openLines(clients, floor),
    acquirePath: "/acquire",
    releasePath: "/release",
  };
  await floor.fill(clients * browsersPerClient, await exampleOf(ofDaemon));
  const sample = (side: Side, between: (lease: Lease) => Promise<void>): Promise<Sample> =>
    wanted.kind === "no client" ? runCycles(side, sampleMs) : runSteps(side, sampleMs, between);
  const sampleFloor = (): Promise<Sample> => sample(ofFloor, async () => {});
  const first = isSwapped ? undefined : await sampleFloor();
  const cyclesOf = ({ acquires }: Sample): number => acquires.length;
  const { done: ours, used } = await costOf(daemon, () => sample(ofDaemon, visit), cyclesOf);
  const pair = { ...wanted, daemon: ours, used, floor: first ?? (await sampleFloor()) };
  await daemon.allIdle(poolOf(clients));
  for (const line of [...ofDaemon.lines, ...ofFloor.lines]) line.close();
  return pair;
}

const openLines = (count: number, server: { open(): Promise<Line> }): Promise<Line[]> =>
  Promise.all(times(count).map(() => server.open()));

/** An answer of the daemon, for the floor to give one as large. */
async function exampleOf({ lines: [line], acquirePath, releasePath }: Side): Promise<object> {
  if (!line) return {};
  const { body } = await line.post(acquirePath, "{}");
  const { session_id, lease_id, ...rest } = JSON.parse(body) as Lease;
  await line.post(releasePath, JSON.stringify({ session_id, lease_id }));
  return rest;
}

/** A client as the daemon sees it: registered, seated in the browser, gone again. */
async function visit({ cdp_ws_url }: Lease): Promise<void> {
  const socket = new WebSocket(cdp_ws_url, { perMessageDeflate: false });
  await once(socket, "open");
  socket.close();
  await once(socket, "close");
}
