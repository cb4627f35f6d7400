import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Budget } from "../base/budget.js";
import type { Clock, Millis } from "../base/clock.js";
import { type Log, textOf } from "../base/log.js";
import { Stops } from "../base/stops.js";
import type { RungName } from "../spec/bodies.js";
import { type Canary, openCanary } from "./canary.js";
import { type ExecutableCopies, openExecutableCopies } from "./resources/executable-copies.js";
import { type DaemonCgroup, findCgroups } from "./resources/cgroup.js";
import type { Engine } from "./chromium.js";
import { findInstalled, type FindMajorVersion, type Installed, makeFindMajorVersion } from "./executable.js";
import { FailedEnds } from "./failed-ends.js";
import { longestFrameBytes } from "./cdp/frame-assembly.js";
import { climb, type Ladder } from "./isolation/ladder.js";
import { hasPrivateRoot } from "./isolation/rungs.js";
import type { Walls } from "./isolation/walls.js";
import { type BrowserLimits, usualLimits } from "./resources/limits.js";
import { systemDirectoryOf, findMachinePolicies, type MachinePolicies } from "./policy/policy-files.js";
import { type HoldDirectory, makeMendScratch, openScratch } from "./resources/open-scratch.js";
import { cgroupNameOf, rememberTops } from "./resources/scratch.js";
import { killStrayProcesses } from "./stray-processes.js";
import { findSizedScratch, type SizedScratch } from "./resources/sized-scratch.js";
import { areUidsMapped, openUids, type Uids } from "./resources/uids.js";

export interface HostSettings {
  /** No other daemon has the same, and nothing but what is for browsers lies in it. */
  readonly scratchDirectory: string;
  /** The first uid that may be given to a browser. It matters only where the daemon is root. */
  readonly uidBase?: number;
  /** These executables are used instead of the installed ones. */
  readonly named?: Readonly<Partial<Record<Engine, string>>>;
  /** What each browser may have; `usualLimits` where they are not given. */
  readonly limits?: BrowserLimits;
  /** False leaves cgroups alone, though they were granted; true where it is not given. */
  readonly usesCgroups?: boolean;
  /**
   * False leaves browsers' directories in the scratch directory's file system; true where it is not given.
   */
  readonly usesMounts?: boolean;
  /** True copies executables into memory once that pays; false where it is not given. */
  readonly copiesExecutables?: boolean;
  /** Unfinished messages of all browsers may hold so many bytes; there is no limit where it is not given. */
  readonly maxReceivedBytes?: number;
  /** The limit from the first step of a launch to its first page. */
  readonly launchLimitMs: Millis;
  /** The weakest rung of isolation on which browsers are launched; `shared-proc` unless given. */
  readonly requireIsolation?: RungName;
  /** Further paths of the machine that browsers may read, such as libraries of an engine of one's own. */
  readonly readablePaths?: readonly string[];
}

/** What this machine has for browsers and lets us do to them, found out once per daemon. */
export interface BrowserHost extends HostSettings, Installed {
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: BrowserLimits;
  /** Absent where no rung that is allowed holds: then nothing is launched. */
  readonly walls?: Walls;
  /** Why there are no walls. */
  readonly refusal?: string;
  /** Absent where the daemon may not give uids. */
  readonly uids?: Uids;
  /** Absent where the daemon may not make cgroups. */
  readonly cgroups?: DaemonCgroup;
  /** Absent where browsers' directories need or get no file system of their own. */
  readonly sizedScratch?: SizedScratch;
  /** Absent where executables are started from where they are installed. */
  readonly executableCopies?: ExecutableCopies;
  readonly machinePolicies: MachinePolicies;
  /** Counts what browsers have sent of messages that are not complete yet. */
  readonly received: Budget;
  /** Its port belongs among those that every egress denies. */
  readonly canary: Canary;
  readonly findMajorVersion: FindMajorVersion;
  readonly failedEnds: FailedEnds;
  /**
   * Makes the scratch directory anew where somebody has removed it: systemd empties `/dev/shm` of what an
   * ordinary user has there when the last session ends (logind.conf(5), RemoveIPC). Has to be called before
   * something is put there.
   */
  mendScratch(): Promise<void>;
  /** Has to be called after the last browser has ended. */
  close(): Promise<void>;
  /** Closes it like `close` and keeps the scratch directory: what is in that is still to be swept. */
  leave(): Promise<void>;
}

const defaultUidBase = 200_000;
const defaultRequirement: RungName = "shared-proc";
const stopLimitMs = 5_000;
const censusPeriodMs: Millis = 30_000;

interface HostContext {
  readonly clock: Clock;
  readonly log: Log;
  /** Left out where no other daemon is given the same scratch directory. */
  readonly hold?: HoldDirectory;
}

export async function openHost(
  settings: HostSettings,
  { clock, log, hold }: HostContext,
): Promise<BrowserHost> {
  const scratch = await openScratch(settings.scratchDirectory, hold);
  const stops = new Stops(clock, stopLimitMs);
  const leave = () => stops.run().finally(() => scratch.leave());
  const close = async (): Promise<void> => {
    try {
      await stops.run();
    } catch (error) {
      // Something lives still, and the next start finds it by what lies there.
      await scratch.leave();
      throw error;
    }
    await scratch.remove();
  };
  try {
    const examined = await examine(settings, { clock, log }, stops);
    return { ...examined, mendScratch: await makeMendScratch(scratch, examined), close, leave };
  } catch (error) {
    await leave().catch((failure: unknown) =>
      log.warn({ error: textOf(failure) }, "browser host did not close"),
    );
    throw error;
  }
}

async function examine(
  settings: HostSettings,
  { clock, log }: HostContext,
  stops: Stops,
): Promise<Omit<BrowserHost, "mendScratch" | "close" | "leave">> {
  const installed = await findInstalled(settings.named);
  const uids = await findUids(settings.uidBase ?? defaultUidBase, log);
  if (uids) stops.add("uids", () => uids.close());
  const cgroups =
    settings.usesCgroups === false ? undefined : await findCgroups(cgroupNameOf(settings.scratchDirectory));
  if (cgroups) {
    stops.add("cgroups", () => cgroups.close());
    await rememberTops(settings.scratchDirectory, cgroups.tops);
  }
  const limits = settings.limits ?? usualLimits;
  if (cgroups) stops.add("cpu priority", startCpuPriority(cgroups, limits, { clock, log }));
  const sizedScratch =
    settings.usesMounts === false ? undefined : await findSizedScratch(settings.scratchDirectory, limits);
  const configuration = systemDirectoryOf(installed.executables.chromium ?? "");
  const machinePolicies = await findMachinePolicies(configuration);
  const ladder = await findLadder(settings, { installed, uids, configuration }, log);
  const canary = await openCanary();
  stops.add("canary", () => canary.close());
  if (uids)
    stops.add(
      "census",
      clock.every(censusPeriodMs, () => void census({ clock, log, uids })),
    );
  logIsolation(ladder, { log, cgroups, sizedScratch, ownUids: uids !== undefined });
  const failedEnds = new FailedEnds({ clock, log });
  stops.add("ends of browsers", () => failedEnds.close());
  return {
    ...settings,
    ...installed,
    limits,
    received: makeReceived(settings),
    ...isolationOf(ladder),
    machinePolicies,
    canary,
    findMajorVersion: makeFindMajorVersion(),
    failedEnds,
    clock,
    log,
    ...(uids && { uids }),
    ...(cgroups && { cgroups }),
    ...(sizedScratch && { sizedScratch }),
    ...openCopies(settings, ladder, { log, stops }),
  };
}

const makeReceived = ({ maxReceivedBytes: daemonBytes = Number.MAX_SAFE_INTEGER }: HostSettings): Budget =>
  new Budget({ browserBytes: longestFrameBytes, daemonBytes });

/** Only a private root can show a copy in the place of the original. */
function openCopies(
  { copiesExecutables, scratchDirectory: scratch }: HostSettings,
  ladder: Ladder,
  { log, stops }: { readonly log: Log; readonly stops: Stops },
): Pick<BrowserHost, "executableCopies"> {
  if (!copiesExecutables || ladder.kind !== "holds" || !hasPrivateRoot(ladder.walls.rung)) return {};
  const executableCopies = openExecutableCopies({
    scratch,
    availableBytes: () => process.availableMemory(),
    log,
  });
  if (executableCopies === undefined) return {};
  stops.add("copies of executables", () => executableCopies.close());
  return { executableCopies };
}

/** The time between two looks at who is busy. */
const priorityPeriodMs: Millis = 200;

function startCpuPriority(
  { cpuPriority }: DaemonCgroup,
  { busyCpuPercent }: BrowserLimits,
  { clock, log }: HostContext,
): () => void {
  if (busyCpuPercent === null) return () => {};
  if (cpuPriority)
    return clock.every(priorityPeriodMs, () => void cpuPriority.look(clock.monotonic(), busyCpuPercent));
  log.warn({}, "busy browsers are not put behind others: the kernel does not let them");
  return () => {};
}

/**
 * Undefined where the daemon may not give uids: on other systems than Linux, without root, or as root of a
 * namespace without them.
 */
async function findUids(base: number, log: Log): Promise<Uids | undefined> {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return undefined;
  if (await areUidsMapped(base)) return await openUids(base);
  log.warn(
    { base },
    "uids from node.uid_base on are not mapped into this user namespace; browsers have the daemon's",
  );
  return undefined;
}

const isolationOf = (ladder: Ladder): Pick<BrowserHost, "walls" | "refusal"> =>
  ladder.kind === "holds" ? { walls: ladder.walls } : { refusal: ladder.why };

interface IsolationFacts extends Pick<BrowserHost, "log"> {
  readonly cgroups: DaemonCgroup | undefined;
  readonly sizedScratch: SizedScratch | undefined;
  readonly ownUids: boolean;
}

function logIsolation(ladder: Ladder, facts: IsolationFacts): void {
  const { log, cgroups, sizedScratch, ownUids } = facts;
  const holds = { cgroups: cgroups?.holds, hasSizedScratch: sizedScratch !== undefined, ownUids };
  if (ladder.kind === "refused")
    return log.error(
      { ...holds, why: ladder.why, see: "docs/isolation.md#where-nothing-is-launched" },
      "no isolation that is allowed holds; nothing is launched",
    );
  const { rung, sandbox } = ladder.walls;
  log.info({ ...holds, rung, sandbox }, "browser host examined");
  if (!hasPrivateRoot(rung)) log.warn({ rung }, "browsers see the host's files: one tenant only");
}

const census = (host: Pick<BrowserHost, "clock" | "log"> & { uids: Uids }): Promise<void> =>
  killStrayProcesses(host).catch((error: unknown) =>
    host.log.error({ error: textOf(error) }, "processes without a browser stay"),
  );

interface FoundHost {
  readonly installed: Installed;
  readonly uids: Uids | undefined;
  readonly configuration: string;
}

/** Finds the rung that holds, which only a trial can show, with the uid that a browser would have. */
async function findLadder(
  settings: HostSettings,
  { installed, uids, configuration }: FoundHost,
  log: Log,
): Promise<Ladder> {
  const { executables, tools, xvfb, prlimit } = installed;
  const uid = uids?.take() ?? null;
  // The machine's own policies come to a browser with ours; whatever else lies beside them is shown as it is.
  const entries = (await readdir(configuration).catch(() => [])).filter((name) => name !== "policies");
  try {
    return await climb(
      {
        scratch: settings.scratchDirectory,
        required: settings.requireIsolation ?? defaultRequirement,
        tools,
        uid,
        executables: Object.values(executables),
        policies: join(configuration, "policies"),
        configuration: entries.map((name) => join(configuration, name)),
        readable: settings.readablePaths ?? [],
        ...(prlimit && { prlimit: prlimit.path }),
        ...(xvfb !== undefined && { xvfb }),
      },
      log,
    );
  } finally {
    if (uid !== null) uids?.give(uid);
  }
}
