import type { ChildProcess } from "node:child_process";
import { basename, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { attest, type Attestation } from "./attestation.js";
import { LaunchAttempt, LaunchFailed, type LaunchOptions } from "./launch-attempt.js";
import { Cdp, PipeClosed } from "./cdp/cdp.js";
import type { Cgroup } from "./resources/cgroup.js";
import type { Chromium, Directories, Exit, ExtensionDirectory, Isolation, LaunchSpec } from "./chromium.js";
import { type Display, startDisplay } from "./display/display.js";
import { BrowserExtensions, reasonOf } from "./extensions/extensions.js";
import { closeFiles } from "./extensions/file-access.js";
import { takeFingerprint } from "./reset/fingerprint.js";
import { type LaunchExtensions, withForced } from "./extensions/forced-extensions.js";
import { fillWorkspace, type Workspace, makeWorkspace, repairWorkspace, takeWorkspace } from "./workspace.js";
import type { BrowserHost } from "./host.js";
import { etcDirectory } from "./isolation/ladder.js";
import { Pages } from "./cdp/pages.js";
import { hasPrivateRoot } from "./isolation/rungs.js";
import { startWalled } from "./isolation/syscall-filter.js";
import { makeEtc } from "./isolation/system-files.js";
import type { WalledIn, Walls } from "./isolation/walls.js";
import { limitsInForce, limitsInside } from "./resources/limits.js";
import { openPipe, type Pipe } from "./cdp/pipe.js";
import { configurationOf, type PolicyWanted, putPolicy, refusePolicy } from "./policy/policy-files.js";
import { exitOf, RunningChromium } from "./running.js";
import { giveCookies } from "./profile/kept-cookies.js";
import { type SwitchFacts, switchesOf } from "./switches.js";
import { lastLinesOf } from "./tail.js";
import { endProcessTree, removeCgroup } from "./resources/process-tree.js";

/** What is ready before any process of the browser starts. */
interface Place {
  readonly spec: LaunchSpec;
  readonly executable: string;
  readonly walls: Walls;
  readonly workspace: Workspace;
  readonly uid: number | null;
  readonly directories: Directories;
  /** To be loaded before it is ready. */
  readonly extensions: readonly LaunchExtensions[];
  /** Ids of extensions that have no access to files. */
  readonly withoutFiles: Set<string>;
  readonly cgroup?: Cgroup;
  readonly display?: Display;
}

interface Started {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly pipe: Pipe;
  readonly exited: Promise<Exit>;
}

/**
 * Starts one browser and waits until it has answered on its pipe, its first page is open and it has its
 * extensions. Throws `LaunchFailed` with the stage and the last lines Chromium wrote; then nothing of it is
 * left but what was adopted.
 */
export async function launchChromium(
  spec: LaunchSpec,
  host: BrowserHost,
  options: LaunchOptions = {},
): Promise<Chromium> {
  const attempt = new LaunchAttempt(host.clock, host.launchLimitMs, options);
  let lastLines: () => readonly string[] = () => [];
  try {
    const place = await prepare(spec, host, attempt);
    attempt.enter("spawn");
    const child = spawnChromium(place, host, await factsOf(place, host));
    lastLines = lastLinesOf(child.stderr as Readable);
    const started = watch(child, { place, host, attempt, lastLines });
    return await greet(started, place, { host, attempt });
  } catch (error) {
    await attempt
      .clear()
      .catch((left: unknown) =>
        host.log.error({ browser: spec.browser, left }, "failed launch not cleared up"),
      );
    throw new LaunchFailed(attempt.stage, lastLines(), error);
  } finally {
    attempt.finish();
  }
}

async function prepare(spec: LaunchSpec, host: BrowserHost, attempt: LaunchAttempt): Promise<Place> {
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
  const extensions = await withForced(await furnish(spec, workspace, attempt));
  const withoutFiles =
    spec.engine === "chromium" ? await closeFiles(workspace, extensions) : new Set<string>();
  if (spec.engine === "chromium")
    await givePolicy({ ...spec, forced: extensions.flatMap(({ forced }) => forced ?? []) }, workspace, host);
  const place = {
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
  return isHeadful(spec) ? { ...place, display: await openDisplay(place, host, attempt) } : place;
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

/**
 * Where the launch is given up meanwhile, its directories are not removed before the furnishing has ended.
 */
async function furnish(
  spec: LaunchSpec,
  workspace: Workspace,
  attempt: LaunchAttempt,
): Promise<readonly ExtensionDirectory[]> {
  if (spec.furnish === undefined && attempt.adopted === undefined) return [];
  attempt.enter("furnishing");
  const furnishing = fillWorkspace(spec, workspace, attempt.halted);
  attempt.stops.add("furnishing", () =>
    furnishing.then(
      () => {},
      () => {},
    ),
  );
  return await attempt.untilHalted(furnishing);
}

const isHeadful = (spec: LaunchSpec): boolean => spec.engine === "chromium" && !spec.headless;

async function openDisplay(place: Place, host: BrowserHost, attempt: LaunchAttempt): Promise<Display> {
  attempt.enter("display");
  if (host.xvfb === undefined) throw new Error("Xvfb is not installed, and a headful browser needs it");
  const { cgroup, spec, walls } = place;
  const wanted = {
    xvfb: host.xvfb,
    walls,
    inside: insideOf(place),
    prefix: cgroup?.prefix ?? [],
    size: spec.viewport,
  };
  const display = await startDisplay(wanted, host.clock, attempt.halted);
  attempt.stops.add("display", () => display.stop());
  return display;
}

const insideOf = ({ directories, uid, spec, display }: Place): WalledIn => ({
  directories,
  uid,
  egress: spec.egress,
  hasPolicies: spec.engine === "chromium",
  hasDisplay: display !== undefined,
});

async function factsOf(
  { spec, executable, walls, directories, extensions }: Place,
  host: BrowserHost,
): Promise<SwitchFacts> {
  const hasForced = extensions.some(({ forced }) => forced);
  const facts = {
    profile: directories.profile,
    sandbox: walls.sandbox,
    hasForced,
    lacksPolicy: !hasPrivateRoot(walls.rung),
  };
  const majorVersion = spec.stealth ? await host.findMajorVersion(executable) : undefined;
  return majorVersion === undefined ? facts : { ...facts, majorVersion };
}

function spawnChromium(place: Place, host: BrowserHost, facts: SwitchFacts): ChildProcess {
  const { cgroup, spec, executable, walls, directories, display } = place;
  const limits = limitsInside({ ...host, memoryBytes: spec.memoryBytes, countsAlone: countsAlone(place) });
  const command = [...limits, executable, ...switchesOf(spec, facts)];
  return startWalled(walls, [...(cgroup?.prefix ?? []), ...walls.browser(insideOf(place), command)], {
    stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
    // A process group of its own, so that a signal to the daemon's does not reach it.
    detached: true,
    cwd: "/",
    env: { ...environmentOf(directories), ...display?.environment },
  });
}

/** Is its uid nobody else's in its user namespace? */
const countsAlone = ({ uid, walls }: Place): boolean => uid !== null || hasPrivateRoot(walls.rung);

/** All a browser gets to know: nothing of the daemon's own environment. */
const environmentOf = ({
  root,
  temporary,
  cache,
  configuration,
  data,
}: Directories): Record<string, string> => ({
  // It starts programs of a desktop by their names, such as xdg-open: there are none.
  PATH: "/nonexistent",
  HOME: root,
  TMPDIR: temporary,
  XDG_CONFIG_HOME: configuration,
  XDG_CACHE_HOME: cache,
  XDG_DATA_HOME: `${data}/share`,
  XDG_RUNTIME_DIR: temporary,
  LANG: "C.UTF-8",
  // There is no desktop to talk to; a bus that is not there is found out faster than one that is searched
  // for.
  DBUS_SESSION_BUS_ADDRESS: `unix:path=${temporary}/no-bus`,
});

interface Watching {
  readonly place: Place;
  readonly host: BrowserHost;
  readonly attempt: LaunchAttempt;
  readonly lastLines: () => readonly string[];
}

function watch(child: ChildProcess, { place, host, attempt, lastLines }: Watching): Started {
  const exited = exitOf(child, lastLines, host.clock);
  attempt.stops.add("processes", () => endProcessTree({ pid: child.pid, exited }, host.clock));
  child.once("error", (error) => attempt.halt(error));
  void exited.then(({ code, signal }) =>
    attempt.halt(new Error(`it ended ${signal ? `by ${signal}` : `with code ${code}`}`)),
  );
  if (child.pid === undefined) throw new Error(`${place.executable} could not be started`);
  const [, , , input, output] = child.stdio;
  return {
    child,
    pid: child.pid,
    pipe: openPipe(input as Writable, output as Readable, {
      counting: (cut) => host.received.open(place.spec.browser, cut),
    }),
    exited,
  };
}

async function greet(
  started: Started,
  place: Place,
  { host, attempt }: { host: BrowserHost; attempt: LaunchAttempt },
): Promise<Chromium> {
  const { spec, directories, workspace } = place;
  const { clock } = host;
  const log = host.log.child({ browser: spec.browser });
  const cdp = new Cdp(started.pipe, clock);
  const pages = new Pages(cdp, spec, log);
  const limitMs = host.launchLimitMs;
  const answers = Promise.all([
    cdp.send("Browser.getVersion", {}, { limitMs }),
    cdp.send("Target.setDiscoverTargets", { discover: true }, { limitMs }),
    cdp.send(
      "Browser.setDownloadBehavior",
      { behavior: "allow", downloadPath: directories.downloads },
      { limitMs },
    ),
  ]);
  const [version] = await attempt.untilHalted(answers.catch(awaitExit));
  attempt.enter("answer");
  const page = await attempt.untilHalted(pages.first);
  attempt.enter("page");
  if (wasUsed(place, attempt)) await attempt.untilHalted(giveCookies(workspace, cdp).catch(awaitExit));
  const baseline =
    spec.isForOne || attempt.adopted
      ? undefined
      : await attempt.untilHalted(takeFingerprint({ cdp, directories }, page).catch(awaitExit));
  const extensions = new BrowserExtensions(cdp, clock, place.withoutFiles);
  if (place.extensions.length > 0) {
    attempt.enter("extensions");
    const loading = await attempt.untilHalted(
      extensions.start(place.extensions, { profile: directories.profile, limitMs }).catch(awaitExit),
    );
    if (loading.kind !== "loaded") throw new Error(reasonOf(loading));
  }
  // After the baseline, for an answer of a server that the operator names may stay in the cache.
  const attestation = await attestLaunched(started, { cdp, page, spec }, { host, attempt });
  if (host.limits.maxCpuPercent !== null) await place.cgroup?.throttle(host.limits.maxCpuPercent);
  attempt.enter("ready");
  const { product, protocolVersion, userAgent } = version;
  const chromium = new RunningChromium({
    ...started,
    spec,
    cdp,
    pages,
    workspace,
    extensions,
    given: place.extensions,
    isAdopted: attempt.adopted !== undefined,
    directories,
    baseline,
    clock,
    log,
    stops: attempt.stops,
    isolation: isolationOf(place, host),
    attestation,
    canary: host.canary,
    version: { product, protocolVersion, userAgent },
    ...(place.display && { display: place.display }),
  });
  if (spec.startUrl !== undefined) chromium.navigate(spec.startUrl).catch(() => {});
  return chromium;
}

/** May there be something of an earlier browser in its directories? */
const wasUsed = ({ spec }: Place, { adopted }: LaunchAttempt): boolean =>
  adopted !== undefined || spec.furnish !== undefined;

async function attestLaunched(
  { pid }: Started,
  { cdp, page, spec }: { cdp: Cdp; page: string; spec: LaunchSpec },
  { host, attempt }: { host: BrowserHost; attempt: LaunchAttempt },
): Promise<Attestation | undefined> {
  const { attesting, namespace } = spec.egress ?? {};
  if (!attesting) return undefined;
  attempt.enter("egress");
  const { canary, clock, launchLimitMs } = host;
  const asked = attest({ cdp, clock, page, pid, canary, namespace }, attesting, launchLimitMs);
  return await attempt.untilHalted(asked.catch(awaitExit));
}

/** A pipe closes a moment before its process is known to have ended, and the end says more. */
async function awaitExit(error: unknown): Promise<never> {
  if (!(error instanceof PipeClosed)) throw error;
  return new Promise(() => {});
}

function isolationOf(place: Place, host: BrowserHost): Isolation {
  const {
    spec,
    uid,
    walls: { rung, sandbox },
  } = place;
  return {
    rung,
    files: hasPrivateRoot(rung) ? "own" : "host",
    tenants: hasPrivateRoot(rung) ? "many" : "one",
    sandbox,
    uid,
    limits: limitsInForce({ ...host, countsAlone: countsAlone(place) }),
    network: networkOf(spec),
  };
}

function networkOf({ egress }: LaunchSpec): Isolation["network"] {
  if (egress === undefined) return "none";
  return egress.namespace === undefined ? "proxy" : "namespace";
}
