import { basename, join } from "node:path";
import type { Cgroup } from "./resources/cgroup.js";
import type { Directories, ExtensionDirectory, LaunchSpec } from "./chromium.js";
import { type Display, startDisplay } from "./display/display.js";
import { closeFiles } from "./extensions/file-access.js";
import { type LaunchExtensions, withForced } from "./extensions/forced-extensions.js";
import type { BrowserHost } from "./host.js";
import { etcDirectory } from "./isolation/ladder.js";
import { hasPrivateRoot } from "./isolation/rungs.js";
import { makeEtc } from "./isolation/system-files.js";
import type { WalledIn, Walls } from "./isolation/walls.js";
import type { LaunchAttempt } from "./launch-attempt.js";
import { systemDirectoryOf, type PolicyWanted, putPolicy, refusePolicy } from "./policy/policy-files.js";
import { mendProfile } from "./profile/mend-profile.js";
import { removeCgroup } from "./resources/process-tree.js";
import { makeWorkspace, repairWorkspace, takeWorkspace, type Workspace } from "./workspace.js";

/** The directories of a browser are there, for whoever has to put something into them. */
export interface PreparedDirectories {
  readonly executable: string;
  readonly walls: Walls;
  readonly workspace: Workspace;
  readonly cgroup?: Cgroup;
}

/** What is ready before any process of the browser starts. */
export interface PreparedLaunch extends PreparedDirectories {
  readonly spec: LaunchSpec;
  readonly uid: number | null;
  readonly directories: Directories;
  /** Somebody has put something into the directories. */
  readonly isFilled: boolean;
  /** These are loaded before the browser is ready. */
  readonly extensions: readonly LaunchExtensions[];
  /** Ids of extensions that have no access to files. */
  readonly withoutFiles: Set<string>;
  readonly display?: Display;
}

/** A launch under way: what of, where, and how far it has come. */
export interface LaunchContext {
  readonly spec: LaunchSpec;
  readonly host: BrowserHost;
  readonly attempt: LaunchAttempt;
}

/** Fills a profile's directory, and says which extensions lie in theirs, in load order. */
export type WorkspaceFilling = Promise<readonly ExtensionDirectory[]>;

/** Makes the browser's directories, or repairs those that it starts in again, and its cgroup. */
export async function prepareDirectories({
  spec,
  host,
  attempt,
}: LaunchContext): Promise<PreparedDirectories> {
  attempt.enter("preparing");
  const executable = host.executables[spec.engine];
  if (executable === undefined) throw new Error(`no executable of ${spec.engine} is installed`);
  const { walls } = host;
  if (walls === undefined)
    throw new Error(`no isolation that node.require_isolation allows holds here: ${host.refusal ?? ""}`);
  await host.mendScratch();
  const workspace = attempt.adopted ?? attempt.own(takeWorkspace(host));
  await workspace.vacate();
  workspace.occupy(attempt.stops);
  const { directories, uid } = workspace;
  if (uid !== null && spec.egress?.admit) attempt.stops.add("admission to the proxy", spec.egress.admit(uid));
  const [made, grouped] = await Promise.allSettled([
    Promise.all([
      attempt.adopted ? repairWorkspace(workspace) : makeWorkspace(workspace, spec, host),
      makeEtcFor(uid, host),
    ]),
    host.cgroups?.make(basename(directories.root), {
      memoryBytes: spec.memoryBytes,
      tasks: host.limits.maxTasks,
      uid,
    }),
  ]);
  if (grouped.status === "rejected") throw grouped.reason;
  const { value: cgroup } = grouped;
  if (cgroup) attempt.stops.add("cgroup", () => removeCgroup(cgroup, host.clock));
  if (made.status === "rejected") throw made.reason;
  return { executable, walls, workspace, ...(cgroup && { cgroup }) };
}

/** Waits until the directories are filled, and makes the browser's policy and display. */
export async function prepareLaunch(
  { spec, host, attempt }: LaunchContext,
  room: PreparedDirectories,
  filling?: WorkspaceFilling,
): Promise<PreparedLaunch> {
  const { workspace } = room;
  const { directories, uid } = workspace;
  const extensions = await withForced(await filled(workspace, attempt, filling));
  const withoutFiles =
    spec.engine === "chromium" ? await closeFiles(workspace, extensions) : new Set<string>();
  if (spec.engine === "chromium")
    await givePolicy({ ...spec, forced: extensions.flatMap(({ forced }) => forced ?? []) }, workspace, host);
  const isFilled = filling !== undefined;
  const prepared = { ...room, spec, uid, directories, isFilled, extensions, withoutFiles };
  return isHeadful(spec) ? { ...prepared, display: await openDisplay(prepared, host, attempt) } : prepared;
}

async function makeEtcFor(uid: number | null, { scratchDirectory }: BrowserHost): Promise<void> {
  const own = uid ?? process.getuid?.() ?? 0;
  await makeEtc(etcDirectory(scratchDirectory, own), own);
}

async function givePolicy(
  wanted: PolicyWanted,
  { directories: { root } }: Workspace,
  { executables, machinePolicies, walls }: BrowserHost,
): Promise<void> {
  if (walls === undefined || !hasPrivateRoot(walls.rung)) return refusePolicy(wanted);
  const shownAt = join(systemDirectoryOf(executables.chromium ?? ""), "policies");
  await putPolicy({ root, shownAt, machine: machinePolicies }, wanted);
}

/** A launch that is given up meanwhile removes its directories only after the filling has ended. */
async function filled(
  workspace: Workspace,
  attempt: LaunchAttempt,
  filling?: WorkspaceFilling,
): Promise<readonly ExtensionDirectory[]> {
  if (filling === undefined && attempt.adopted === undefined) return [];
  const mended = mend(workspace, filling ?? Promise.resolve([]));
  const over = mended.then(
    () => {},
    () => {},
  );
  attempt.stops.add("assets", () => over);
  attempt.enter("assets");
  return await attempt.untilHalted(mended);
}

async function mend(workspace: Workspace, filling: WorkspaceFilling): Promise<readonly ExtensionDirectory[]> {
  const extensions = await filling;
  await mendProfile(workspace, extensions);
  return extensions;
}

const isHeadful = (spec: LaunchSpec): boolean => spec.engine === "chromium" && !spec.headless;

async function openDisplay(
  prepared: PreparedLaunch,
  host: BrowserHost,
  attempt: LaunchAttempt,
): Promise<Display> {
  attempt.enter("display");
  if (host.xvfb === undefined) throw new Error("Xvfb is not installed, and a headful browser needs it");
  const { cgroup, spec, walls } = prepared;
  const wanted = {
    xvfb: host.xvfb,
    walls,
    inside: insideOf(prepared),
    prefix: cgroup?.prefix ?? [],
    size: spec.viewport,
  };
  const display = await startDisplay(wanted, host.clock, attempt.halted);
  attempt.stops.add("display", () => display.stop());
  return display;
}

export const insideOf = ({ directories, uid, spec, display }: PreparedLaunch): WalledIn => ({
  directories,
  uid,
  egress: spec.egress,
  hasPolicies: spec.engine === "chromium",
  hasDisplay: display !== undefined,
});

/** True where nobody else in its user namespace has its uid. */
export const countsAlone = ({ uid, walls }: PreparedLaunch): boolean =>
  uid !== null || hasPrivateRoot(walls.rung);
