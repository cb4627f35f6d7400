import type { Millis } from "../../base/clock.js";
import type { ControlId, Digest } from "../../base/ids.js";
import { textOf } from "../../base/log.js";
import type { Stops } from "../../base/stops.js";
import { makeSweep } from "../../archive/sweep.js";
import { EpochWatch } from "../../observe/epoch-watch.js";
import type { makeFill } from "../../pool/fill.js";
import { makeEndLeases } from "../../lease/end-leases.js";
import { type Maintenance, makeMaintenance } from "../../pool/maintenance.js";
import { makeRefreshPartition } from "../../pool/refresh.js";
import { TickShare } from "../../schedule/tick-share.js";
import { repeatTicks, startTicks, type Tick } from "../../schedule/ticks.js";
import { makeSweepEvents } from "../../telemetry/sweep-events.js";
import type { DaemonParts } from "../parts.js";
import { forgetProjects } from "./projects.js";

interface ScheduleParts {
  readonly control: ControlId;
  readonly fill: ReturnType<typeof makeFill>;
  readonly more: readonly Tick[];
}

/** The ticks: those of pools are spread over the controls, of the others each is run by one of them. */
export async function startSchedules(
  shared: DaemonParts,
  { control, fill, more }: ScheduleParts,
  stops: Stops,
): Promise<void> {
  const { config, clock, log, stores, metrics } = shared;
  const { poolStore, projects, nodes, queues, queueOptions, ticks: record } = stores;
  const { acquire, node, periods } = config;
  // A control that has noted nothing for several periods of the fill has left a gap in which nobody was
  // heard.
  const gapMs = Math.max(3 * periods.fillMs, acquire.controlLostAfterMs / 2);
  const epochs = new EpochWatch(log, metrics.epochs);
  const listensMs = async (): Promise<Millis> => {
    const { forMs, epoch } = await record.listen(gapMs);
    epochs.see(epoch);
    return forMs;
  };
  const note = (): void =>
    void listensMs().catch((error: unknown) => log.warn({ error: textOf(error) }, "listening was not noted"));
  // This has a timer of its own, because a tick may take long.
  stops.add("listening", clock.every(periods.fillMs, note));
  const { share, leave } = openTickShare(shared, control);
  const maintenance = makeMaintenance({
    poolStore,
    projects,
    nodes,
    jobs: queues,
    clock,
    log,
    fill,
    refresh: (partition) =>
      makeRefreshPartition({ poolStore, ...projects.ofPartition(partition) })(partition),
    share: (partition) => share.holds(partition),
    queues,
    maxLeases: config.recycle.maxLeases,
    listensMs,
    lostAfterMs: { node: node.lostAfterMs, control: acquire.controlLostAfterMs },
  });
  const stopTicks = repeatTicks(ticksOfPools(periods, maintenance), { clock, log });
  // A walk over the pools ends where this control no longer has a share.
  stops.add("ticks of pools", () => leave().then(stopTicks));
  const ticks: readonly Tick[] = [
    { name: "sweep", periodMs: periods.reapMs, run: maintenance.sweep },
    { name: "events", periodMs: periods.recycleMs, run: maintenance.trimEvents },
    { name: "archives", periodMs: config.archives.sweepPeriodMs, run: sweepArchives(shared) },
    { name: "telemetry", periodMs: config.telemetry.sweepPeriodMs, run: sweepEvents(shared) },
    { name: "projects", periodMs: periods.recycleMs, run: forgetProjects(shared) },
    { name: "ended keys", periodMs: periods.reapMs, run: endLeases(shared) },
    ...more,
  ];
  const started = await startTicks(queueOptions, ticks, { clock, record });
  stops.add("ticks", () => started.close());
}

const ticksOfPools = (
  periods: DaemonParts["config"]["periods"],
  maintenance: Maintenance,
): readonly Tick[] => [
  { name: "fill", periodMs: periods.fillMs, run: maintenance.fill },
  { name: "reap", periodMs: periods.reapMs, run: maintenance.reap },
  { name: "recycle", periodMs: periods.recycleMs, run: maintenance.recycle },
];

/** Says again and again that this control lives, until it leaves its share to the others. */
function openTickShare(
  { config: { periods }, clock, log, stores: { ticks } }: DaemonParts,
  control: ControlId,
): { share: TickShare; leave: () => Promise<void> } {
  // Nobody else fills the pools of one that was killed before.
  const lostMs = Math.max(3 * periods.fillMs, 1000);
  const beats = { beat: () => ticks.share(control, lostMs), leave: () => ticks.leave(control) };
  const share = new TickShare({ control, beats, clock, lostAfterMs: lostMs });
  const beat = (): void =>
    void share
      .beat()
      .catch((error: unknown) => log.warn({ error: textOf(error) }, "share of the ticks is not known"));
  const stopBeats = clock.every(periods.fillMs, beat);
  beat();
  const leave = async (): Promise<void> => {
    stopBeats();
    await share.leave().catch(() => {});
  };
  return { share, leave };
}

const sweepEvents = ({ clock, config, stores: { events } }: DaemonParts): Tick["run"] =>
  makeSweepEvents(events, { maxBytes: config.telemetry.maxTotalBytes, clock });

const endLeases = ({ config, stores: { apiKeys, poolStore, projects } }: DaemonParts): Tick["run"] =>
  makeEndLeases({ keys: apiKeys, poolStore, projects, isWanted: config.access.endLeasesOfDeletedKeys });

/** Deletes archives that neither an extension nor a profile nor the audit log names. */
function sweepArchives({ config, clock, log, stores, archives: { archives } }: DaemonParts): Tick["run"] {
  const named = async (): Promise<ReadonlySet<Digest>> => {
    const all = await stores.projects.all();
    const extensions = (await Promise.all(all.map((project) => project.extensions.all()))).flat();
    const profiles = (await Promise.all(all.map((project) => project.profiles.all()))).flat();
    const segments = await stores.audit.archives();
    return new Set([
      ...extensions.map(({ digest }) => digest),
      ...profiles.flatMap(({ archive }) => archive?.digest ?? []),
      ...segments,
    ]);
  };
  return makeSweep({ archives, named, unusedMs: config.archives.unusedMs, clock, log });
}
