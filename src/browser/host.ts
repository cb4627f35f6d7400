import { mkdir, chmod, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Clock, Millis } from "../base/clock.js";
import type { Log } from "../base/log.js";
import { Stops } from "../base/stops.js";
import { type Canary, openCanary } from "./canary.js";
import { type Cgroups, findCgroups } from "./cgroup.js";
import type { Engine } from "./chromium.js";
import type { Tools } from "./confinement.js";
import { findExecutable, findTool } from "./executable.js";
import { type PolicyMeans, preparePolicy } from "./policy.js";
import { findSandbox, type Sandbox } from "./sandbox.js";
import { cgroupTopsOf, keepCgroupTops, makeScratchDirectory } from "./scratch.js";
import { openUids, type Uids } from "./uids.js";
import { type FindMajorVersion, makeFindMajorVersion } from "./version.js";

export interface HostSettings {
  /** One per data directory; its daemon holds that directory's lock. */
  readonly scratchDirectory: string;
  /** The first uid that may be given to a browser. Matters where the daemon is root. */
  readonly uidBase?: number;
  /** Used instead of what is installed. */
  readonly named?: Readonly<Partial<Record<Engine, string>>>;
  /** From the first step of a launch to its first page. */
  readonly launchLimitMs: Millis;
}

/** What this machine has for browsers and lets us do to them: found out once per daemon. */
export interface Host extends HostSettings {
  readonly clock: Clock;
  readonly log: Log;
  readonly executables: Readonly<Partial<Record<Engine, string>>>;
  readonly xvfb?: string;
  readonly tools: Tools;
  readonly sandbox: Sandbox;
  /** Absent where the daemon may not give uids. */
  readonly uids?: Uids;
  /** Absent where memory cannot be capped. */
  readonly cgroups?: Cgroups;
  readonly policy: PolicyMeans;
  /** Its port belongs among those that every egress denies. */
  readonly canary: Canary;
  readonly findMajorVersion: FindMajorVersion;
  /** After the last browser has ended. */
  close(): Promise<void>;
}

const defaultUidBase = 200_000;
const stopLimitMs = 5_000;

export async function openHost(settings: HostSettings, { clock, log }: { clock: Clock; log: Log }): Promise<Host> {
  const stops = new Stops(clock, stopLimitMs);
  await makeScratchDirectory(settings.scratchDirectory);
  stops.add("scratch directory", () => rm(settings.scratchDirectory, { recursive: true, force: true }));
  const isRoot = process.platform === "linux" && process.getuid?.() === 0;
  const installed = await findInstalled(settings);
  const uids = isRoot ? await openUids(settings.uidBase ?? defaultUidBase) : undefined;
  if (uids) stops.add("uids", () => uids.close());
  const cgroups = await findCgroups(basename(settings.scratchDirectory));
  if (cgroups) {
    stops.add("cgroups", () => cgroups.close());
    await rememberTop(settings.scratchDirectory, cgroups.top);
  }
  if (isRoot) await makeSocketDirectory();
  const facts = await findFacts(settings, installed, uids);
  const canary = await openCanary();
  stops.add("canary", () => canary.close());
  log.info({ ...facts, memoryCap: cgroups?.kind ?? "none", ownUids: isRoot }, "browser host examined");
  return { ...settings, ...installed, ...facts, canary, findMajorVersion: makeFindMajorVersion(), clock, log, ...(uids && { uids }), ...(cgroups && { cgroups }), close: () => stops.run() };
}

async function rememberTop(scratch: string, top: string): Promise<void> {
  const earlier = await cgroupTopsOf(scratch);
  await keepCgroupTops(scratch, [...new Set([...earlier, top])]);
}

type Installed = Pick<Host, "executables" | "tools" | "xvfb">;

async function findInstalled({ named = {} }: HostSettings): Promise<Installed> {
  const [chromium, shell, xvfb, setpriv, unshare, nsenter, ip] = await Promise.all([
    findExecutable("chromium", named.chromium), findExecutable("headless-shell", named["headless-shell"]),
    findTool("Xvfb"), findTool("setpriv"), findTool("unshare"), findTool("nsenter"), findTool("ip"),
  ]);
  return {
    executables: { ...(chromium && { chromium }), ...(shell && { "headless-shell": shell }) },
    tools: { ...(setpriv && { setpriv }), ...(unshare && { unshare }), ...(nsenter && { nsenter }), ...(ip && { ip }) },
    ...(xvfb && { xvfb }),
  };
}

/** What can be found out only by trying, with the uid a browser would have. */
async function findFacts(settings: HostSettings, { executables, tools }: Installed, uids?: Uids): Promise<Pick<Host, "sandbox" | "policy">> {
  const executable = executables.chromium ?? executables["headless-shell"] ?? join(settings.scratchDirectory, "none");
  const uid = uids?.take() ?? null;
  const [sandbox, policy] = await Promise.all([
    findSandbox(executable, uid),
    preparePolicy({ scratch: settings.scratchDirectory, executable, tools, uid }),
  ]);
  if (uid !== null) uids?.give(uid);
  return { sandbox, policy };
}

/** Where X servers put their sockets. Only root can make it as X wants it: writable for all, and sticky. */
async function makeSocketDirectory(): Promise<void> {
  const path = "/tmp/.X11-unix";
  const made = await mkdir(path, { recursive: true });
  if (made !== undefined) await chmod(path, 0o1777);
}
