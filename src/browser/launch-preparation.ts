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
import { configurationOf, type PolicyWanted, putPolicy, refusePolicy } from "./policy/policy-files.js";
import { removeCgroup } from "./resources/process-tree.js";
import { fillWorkspace, makeWorkspace, repairWorkspace, takeWorkspace, type Workspace } from "./workspace.js";

/** What is ready before any process of the browser starts. */
export interface PreparedLaunch {
  readonly spec: LaunchSpec;
  readonly executable: string;
  readonly walls: Walls;
  readonly workspace: Workspace;
  readonly uid: number | null;
  readonly directories: Directories;
  /** These are loaded before the browser is ready. */
  readonly extensions: readonly LaunchExtensions[];
  /** Ids of extensions that have no access to files. */
  readonly withoutFiles: Set<string>;
  readonly cgroup?: Cgroup;
  readonly display?: Display;
}

/** Makes the browser's directories, cgroup, policy and display. */
export async function prepareLaunch(
  spec: LaunchSpec,
  host: BrowserHost,
  attempt: LaunchAttempt,
): Promise<PreparedLaunch> {
  attempt.enter("preparing");
  const executable = host.executables[spec.engine];
  if (executable === undefined) throw new Error(`no executable of ${spec.engine} is installed`);
  const { walls } = host;
  if (walls === undefined)
    throw new Error(`no isolation that node.require_isolation allows holds here: ${host.refusal ?? ""}`);
  const workspace = attempt.adopted ?? attempt.own(takeWorkspace(host));
  const { directories, uid } = workspace;
  const [made, grouped] = await Promise.allSettled([
    Promise.all([
      attempt.adopted ? repairWorkspace(workspace) : makeWorkspace(workspace, spec, host),
      makeEtcFor(uid, host),
    ]),
    host.cgroups?.make(basename(directories.root), {
      memoryBytes: spec.memoryBytes,
      tasks: host.limits.maxTasks,
    }),
  ]);
  if (grouped.status === "rejected") throw grouped.reason;
  const { value: cgroup } = grouped;
  if (cgroup) attempt.stops.add("cgroup", () => removeCgroup(cgroup, host.clock));
  if (made.status === "rejected") throw made.reason;
  const extensions = await withForced(await fill(spec, workspace, attempt));
  const withoutFiles =
    spec.engine === "chromium" ? await closeFiles(workspace, extensions) : new Set<string>();
  if (spec.engine === "chromium")
    await givePolicy({ ...spec, forced: extensions.flatMap(({ forced }) => forced ?? []) }, workspace, host);
  const prepared = {
    spec,
    executable,
    walls,
    workspace,
    uid,
    directories,
    extensions,
    withoutFiles,
    ...(cgroup && { cgroup }),
  };
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
  const shownAt = join(configurationOf(executables.chromium ?? ""), "policies");
  await putPolicy({ root, shownAt, machine: machinePolicies }, wanted);
}

/** A launch that is given up meanwhile removes its directories only after this has ended. */
async function fill(
  spec: LaunchSpec,
  workspace: Workspace,
  attempt: LaunchAttempt,
): Promise<readonly ExtensionDirectory[]> {
  if (spec.fillWorkspace === undefined && attempt.adopted === undefined) return [];
  attempt.enter("assets");
  const filling = fillWorkspace(spec, workspace, attempt.halted);
  attempt.stops.add("assets", () =>
    filling.then(
      () => {},
      () => {},
    ),
  );
  return await attempt.untilHalted(filling);
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
