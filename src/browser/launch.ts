import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { attest, type Attestation } from "./attest.js";
import { Attempt, LaunchFailed, type LaunchOptions } from "./attempt.js";
import { Cdp, PipeClosed } from "./cdp.js";
import type { Cgroup } from "./cgroup.js";
import type { Chromium, Directories, Exit, ExtensionDirectory, Isolation, LaunchSpec } from "./chromium.js";
import { type Confinement, confined, type Mount } from "./confinement.js";
import { type Display, startDisplay } from "./display.js";
import { Extensions, reasonOf } from "./extensions.js";
import { takeFingerprint } from "./fingerprint.js";
import { type Wanted, withForced } from "./forced.js";
import { furnishHome, type Home, makeHome, mendHome, takeHome } from "./home.js";
import type { Host } from "./host.js";
import { Pages } from "./pages.js";
import { openPipe, type Pipe } from "./pipe.js";
import { putPolicy } from "./policy.js";
import { exitOf, RunningChromium } from "./running.js";
import { giveCookies } from "./session-cookies.js";
import { type SwitchFacts, switchesOf } from "./switches.js";
import { tailOf } from "./tail.js";
import { endTree, removeCgroup } from "./tree.js";

/** What is ready before any process of the browser starts. */
interface Place {
  readonly spec: LaunchSpec;
  readonly executable: string;
  readonly home: Home;
  readonly uid: number | null;
  readonly directories: Directories;
  /** To be loaded before it is ready. */
  readonly extensions: readonly Wanted[];
  readonly cgroup?: Cgroup;
  /** Where its policy is shown to it by a mount. */
  readonly mount?: Mount;
  readonly display?: Display;
}

interface Started {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly pipe: Pipe;
  readonly exited: Promise<Exit>;
  /** Its memory is capped from then on. */
  readonly entered: Promise<void>;
}

/**
 * Starts one browser and waits until it has answered on its pipe, its first page is open and it has its extensions. Throws
 * `LaunchFailed` with the stage and the last lines Chromium wrote; then nothing of it is left but what was adopted.
 */
export async function launchChromium(spec: LaunchSpec, host: Host, options: LaunchOptions = {}): Promise<Chromium> {
  const attempt = new Attempt(host.clock, host.launchLimitMs, options);
  let lastLines: () => readonly string[] = () => [];
  try {
    const place = await prepare(spec, host, attempt);
    attempt.enter("spawn");
    const child = spawnChromium(place, host, await factsOf(place, host));
    lastLines = tailOf(child.stderr as Readable);
    const started = watch(child, { place, host, attempt, lastLines });
    return await greet(started, place, { host, attempt });
  } catch (error) {
    await attempt.clear().catch((left: unknown) => host.log.error({ browser: spec.browser, left }, "failed launch not cleared up"));
    throw new LaunchFailed(attempt.stage, lastLines(), error);
  } finally {
    attempt.finish();
  }
}

async function prepare(spec: LaunchSpec, host: Host, attempt: Attempt): Promise<Place> {
  attempt.enter("preparing");
  const executable = host.executables[spec.engine];
  if (executable === undefined) throw new Error(`no executable of ${spec.engine} is installed`);
  const home = attempt.adopted ?? attempt.own(takeHome(spec, host));
  const { directories, uid } = home;
  const [made, grouped] = await Promise.allSettled([
    attempt.adopted ? mendHome(home) : makeHome(home),
    host.cgroups?.make(spec.browser, spec.memoryBytes),
  ]);
  if (grouped.status === "rejected") throw grouped.reason;
  const { value: cgroup } = grouped;
  if (cgroup) attempt.stops.add("cgroup", () => removeCgroup(cgroup, host.clock));
  if (made.status === "rejected") throw made.reason;
  const extensions = await withForced(await furnish(spec, home, attempt));
  const asked = { ...spec, forced: extensions.flatMap(({ forced }) => forced ?? []) };
  const mount = spec.engine === "chromium" ? await putPolicy(host.policy, directories.root, asked) : undefined;
  const place = { spec, executable, home, uid, directories, extensions, ...(cgroup && { cgroup }), ...(mount && { mount }) };
  return isHeadful(spec) ? { ...place, display: await openDisplay(place, host, attempt) } : place;
}

/** Where the launch is given up meanwhile, its directories are not removed before the furnishing has ended. */
async function furnish(spec: LaunchSpec, home: Home, attempt: Attempt): Promise<readonly ExtensionDirectory[]> {
  if (spec.furnish === undefined && attempt.adopted === undefined) return [];
  attempt.enter("furnishing");
  const furnishing = furnishHome(spec, home, attempt.halted);
  attempt.stops.add("furnishing", () => furnishing.then(() => {}, () => {}));
  return await attempt.untilHalted(furnishing);
}

const isHeadful = (spec: LaunchSpec): boolean => spec.engine === "chromium" && !spec.headless;

async function openDisplay(place: Place, host: Host, attempt: Attempt): Promise<Display> {
  attempt.enter("display");
  if (host.xvfb === undefined) throw new Error("Xvfb is not installed, and a headful browser needs it");
  const { directories, spec } = place;
  const confinement = confinementOf(place, host);
  const wanted = { xvfb: host.xvfb, tools: host.tools, confinement, directories, size: spec.viewport };
  const display = await startDisplay(wanted, host.clock, attempt.halted);
  attempt.stops.add("display", () => display.stop());
  await place.cgroup?.enter(display.pid);
  return display;
}

const confinementOf = ({ uid }: Place, host: Host): Confinement => ({ uid, mayGainRights: host.sandbox === "setuid" });

async function factsOf({ spec, executable, directories, extensions }: Place, host: Host): Promise<SwitchFacts> {
  const hasForced = extensions.some(({ forced }) => forced);
  const facts = { profile: directories.profile, sandbox: host.sandbox, hasForced, lacksPolicy: host.policy.kind === "none" };
  const majorVersion = spec.stealth ? await host.findMajorVersion(executable) : undefined;
  return majorVersion === undefined ? facts : { ...facts, majorVersion };
}

function spawnChromium(place: Place, host: Host, facts: SwitchFacts): ChildProcess {
  const { spec, executable, directories, display, mount } = place;
  const network = spec.egress?.namespace;
  const confinement = { ...confinementOf(place, host), ...(mount && { mount }), ...(network !== undefined && { network }) };
  const command = [executable, ...switchesOf(spec, facts)];
  const [program = executable, ...args] = confined(host.tools, confinement, command);
  return spawn(program, args, {
    stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
    // A process group of its own, so that a signal to the daemon's does not reach it and all of it can be signalled at once.
    detached: true,
    cwd: host.policy.kind === "working-directory" ? directories.root : "/",
    env: { ...environmentOf(directories), ...display?.environment },
  });
}

/** All a browser gets to know: nothing of the daemon's own environment. */
const environmentOf = ({ root, temporary }: Directories): Record<string, string> => ({
  PATH: "/usr/local/bin:/usr/bin:/bin",
  HOME: root,
  TMPDIR: temporary,
  XDG_CONFIG_HOME: `${root}/.config`,
  XDG_CACHE_HOME: `${root}/.cache`,
  XDG_DATA_HOME: `${root}/.local/share`,
  XDG_RUNTIME_DIR: temporary,
  LANG: "C.UTF-8",
  // There is no desktop to talk to; a bus that is not there is found out faster than one that is searched for.
  DBUS_SESSION_BUS_ADDRESS: `unix:path=${temporary}/no-bus`,
});

interface Watching {
  readonly place: Place;
  readonly host: Host;
  readonly attempt: Attempt;
  readonly lastLines: () => readonly string[];
}

function watch(child: ChildProcess, { place, host, attempt, lastLines }: Watching): Started {
  const exited = exitOf(child, lastLines, host.clock);
  const { directories, cgroup, display } = place;
  const spared = new Set(display ? [display.pid] : []);
  const tree = { root: directories.root, pid: child.pid, exited, spared, ...(cgroup && { cgroup }) };
  attempt.stops.add("processes", () => endTree(tree, host.clock));
  child.once("error", (error) => attempt.halt(error));
  void exited.then(({ code, signal }) => attempt.halt(new Error(`it ended ${signal ? `by ${signal}` : `with code ${code}`}`)));
  if (child.pid === undefined) throw new Error(`${place.executable} could not be started`);
  const entered = cgroup?.enter(child.pid) ?? Promise.resolve();
  entered.catch((error: Error) => attempt.halt(error));
  const [, , , input, output] = child.stdio;
  return { child, pid: child.pid, pipe: openPipe(input as Writable, output as Readable), exited, entered };
}

async function greet(started: Started, place: Place, { host, attempt }: { host: Host; attempt: Attempt }): Promise<Chromium> {
  const { spec, directories, home } = place;
  const { clock } = host;
  const log = host.log.child({ browser: spec.browser });
  const cdp = new Cdp(started.pipe, clock);
  const pages = new Pages(cdp, spec, log);
  const limitMs = host.launchLimitMs;
  const answers = Promise.all([
    cdp.send("Browser.getVersion", {}, { limitMs }),
    cdp.send("Target.setDiscoverTargets", { discover: true }, { limitMs }),
    cdp.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: directories.downloads }, { limitMs }),
  ]);
  const [version] = await attempt.untilHalted(answers.catch(awaitExit));
  attempt.enter("answer");
  const page = await attempt.untilHalted(pages.first);
  attempt.enter("page");
  if (wasUsed(place, attempt)) await attempt.untilHalted(giveCookies(home, cdp).catch(awaitExit));
  const baseline = await attempt.untilHalted(takeFingerprint({ cdp, directories }, page).catch(awaitExit));
  const extensions = new Extensions(cdp, clock);
  if (place.extensions.length > 0) {
    attempt.enter("extensions");
    const loading = await attempt.untilHalted(extensions.start(place.extensions, { profile: directories.profile, limitMs }).catch(awaitExit));
    if (loading.kind !== "loaded") throw new Error(reasonOf(loading));
  }
  // After the baseline, for an answer of a server that the operator names may stay in the cache.
  const attestation = await attestLaunched(started, { cdp, page, spec }, { host, attempt });
  await attempt.untilHalted(started.entered);
  attempt.enter("ready");
  const { product, protocolVersion, userAgent } = version;
  const chromium = new RunningChromium({
    ...started, spec, cdp, pages, home, extensions, given: place.extensions, isAdopted: attempt.adopted !== undefined, directories, baseline, clock, log, stops: attempt.stops,
    isolation: isolationOf(place, host), attestation, canary: host.canary, version: { product, protocolVersion, userAgent },
    ...(place.display && { display: place.display }),
  });
  if (spec.startUrl !== undefined) chromium.navigate(spec.startUrl).catch(() => {});
  return chromium;
}

/** May there be something of an earlier browser in its directories? */
const wasUsed = ({ spec }: Place, { adopted }: Attempt): boolean => adopted !== undefined || spec.furnish !== undefined;

async function attestLaunched(
  { pid }: Started, { cdp, page, spec }: { cdp: Cdp; page: string; spec: LaunchSpec }, { host, attempt }: { host: Host; attempt: Attempt },
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

const isolationOf = ({ spec, uid }: Place, host: Host): Isolation => ({
  sandbox: host.sandbox,
  uid,
  memoryCap: host.cgroups?.kind ?? "none",
  files: spec.engine === "chromium" && host.policy.kind !== "none" ? "policy" : "gate",
  network: networkOf(spec),
});

function networkOf({ egress }: LaunchSpec): Isolation["network"] {
  if (egress === undefined) return "none";
  return egress.namespace === undefined ? "proxy" : "namespace";
}
