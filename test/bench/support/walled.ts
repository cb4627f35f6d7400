import { join } from "node:path";
import type { Engine } from "../../../src/browser/chromium.js";
import { closeFiles } from "../../../src/browser/extensions/file-access.js";
import { type Workspace, makeWorkspace, takeWorkspace } from "../../../src/browser/workspace.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { etcDirectory } from "../../../src/browser/isolation/ladder.js";
import { makeEtc } from "../../../src/browser/isolation/system-files.js";
import type { Walls } from "../../../src/browser/isolation/walls.js";
import { limitsInside } from "../../../src/browser/resources/limits.js";
import { systemDirectoryOf, putPolicy } from "../../../src/browser/policy/policy-files.js";
import { switchesOf } from "../../../src/browser/switches.js";
import { launchSpec } from "../../support/browser/chromium-host.js";
import { viewport } from "./bare.js";

/** A command line that only has to be spawned: all that it needs is there. */
export interface Walled {
  readonly executable: string;
  readonly switches: readonly string[];
  readonly walls?: Pick<Walls, "filter">;
  discard(): Promise<void>;
}

/**
 * The command line of one of our browsers, but for its network namespace and its cgroup: the private root,
 * its uid, its sandbox.
 */
export async function walledCommand(engine: Engine, host: BrowserHost): Promise<Walled> {
  const executable = host.executables[engine];
  const { walls } = host;
  if (executable === undefined || walls === undefined)
    throw new Error(`${engine} cannot be launched in a private root here`);
  const spec = launchSpec({ engine, viewport });
  const workspace = takeWorkspace(host);
  const { directories, uid } = workspace;
  await makeWorkspace(workspace, spec, host);
  await fill(workspace, engine, host);
  const inside = {
    directories,
    uid,
    egress: undefined,
    hasPolicies: engine === "chromium",
    hasDisplay: false,
  };
  const facts = {
    profile: directories.profile,
    sandbox: walls.sandbox,
    hasForced: false,
    lacksPolicy: false,
  };
  const limits = limitsInside({ ...host, memoryBytes: spec.memoryBytes, countsAlone: true });
  const [program = "", ...switches] = walls.browser(inside, [
    ...limits,
    executable,
    ...switchesOf(spec, facts),
  ]);
  return { executable: program, switches, walls, discard: () => workspace.discard() };
}

async function fill(
  workspace: Workspace,
  engine: Engine,
  { scratchDirectory, executables, machinePolicies }: BrowserHost,
): Promise<void> {
  const own = workspace.uid ?? process.getuid?.() ?? 0;
  await makeEtc(etcDirectory(scratchDirectory, own), own);
  if (engine !== "chromium") return;
  await closeFiles(workspace, []);
  const shownAt = join(systemDirectoryOf(executables.chromium ?? ""), "policies");
  await putPolicy({ root: workspace.directories.root, shownAt, machine: machinePolicies }, {});
}
