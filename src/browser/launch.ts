import type { Readable } from "node:stream";
import type { Millis } from "../base/clock.js";
import { textOf } from "../base/log.js";
import { attest, type Attestation } from "./attestation.js";
import { Cdp, PipeClosed } from "./cdp/cdp.js";
import { Pages } from "./cdp/pages.js";
import type { Chromium, Isolation, LaunchSpec, Sidecar, StartDirectories } from "./chromium.js";
import { Downloads } from "./downloads.js";
import { BrowserExtensions, reasonOf } from "./extensions/extensions.js";
import type { BrowserHost } from "./host.js";
import { hasPrivateRoot } from "./isolation/rungs.js";
import { type StartedProcess, startWalled } from "./isolation/syscall-filter.js";
import { LaunchAttempt, LaunchFailed, type LaunchOptions } from "./launch-attempt.js";
import {
  countsAlone,
  type WorkspaceFilling,
  insideOf,
  type LaunchContext,
  type PreparedDirectories,
  prepareDirectories,
  type PreparedLaunch,
  prepareLaunch,
} from "./launch-preparation.js";
import { type ChromiumProcess, factsOf, spawnChromium, watchProcess } from "./launch-process.js";
import { giveCookies } from "./profile/kept-cookies.js";
import { attachTo, type Fingerprint, takeFingerprint } from "./reset/fingerprint.js";
import { limitsInForce, sidecarLimits } from "./resources/limits.js";
import { type Launched, RunningChromium } from "./running.js";
import { lastLinesOf } from "./tail.js";

/** A launch whose directories are there. It has to be started, filled or not. */
export interface OpenLaunch {
  /** Where extensions and a profile can be put before Chromium starts. */
  readonly room: StartDirectories;
  /**
   * Starts the browser once what fills its directories is done, and waits until it has answered on its pipe,
   * its first page is open and it has its extensions.
   */
  start(filling?: WorkspaceFilling): Promise<Chromium>;
}

/**
 * Begins the launch of one browser. This and `start` throw `LaunchFailed` with the stage and the last lines
 * Chromium wrote; then nothing of it is left but what was adopted.
 */
export async function openLaunch(
  spec: LaunchSpec,
  host: BrowserHost,
  options: LaunchOptions = {},
): Promise<OpenLaunch> {
  const attempt = new LaunchAttempt(host.clock, host.launchLimitMs, options);
  const context: LaunchContext = { spec, host, attempt };
  try {
    const room = await prepareDirectories(context);
    const { directories, uid } = room.workspace;
    return {
      room: { directories, uid, signal: attempt.halted },
      start: (filling) => start(context, room, filling),
    };
  } catch (error) {
    throw await failed(context, error);
  }
}

async function start(
  context: LaunchContext,
  room: PreparedDirectories,
  filling?: WorkspaceFilling,
): Promise<Chromium> {
  const { spec, host, attempt } = context;
  let lastLines: () => readonly string[] = () => [];
  try {
    const prepared = await prepareLaunch(context, room, filling);
    attempt.enter("spawn");
    const child = await spawnChromium(prepared, host, await factsOf(prepared, host));
    lastLines = lastLinesOf(child.stderr as Readable);
    const started = watchProcess(child, { prepared, host, attempt, lastLines });
    const found = await awaitReady(started, prepared, context);
    attempt.enter("ready");
    const chromium = running(started, prepared, { ...context, found });
    if (spec.startUrl !== undefined) chromium.navigate(spec.startUrl).catch(() => {});
    attempt.finish();
    return chromium;
  } catch (error) {
    throw await failed(context, error, lastLines());
  }
}

/** Clears up what the launch has made. */
async function failed(
  { spec, host, attempt }: LaunchContext,
  error: unknown,
  lastLines: readonly string[] = [],
): Promise<LaunchFailed> {
  await attempt
    .clear()
    .catch((left: unknown) => {
      host.log.error({ browser: spec.browser, error: textOf(left) }, "failed launch not cleared up");
      host.failedEnds.add(() => attempt.clear());
    })
    .finally(() => attempt.finish());
  return new LaunchFailed(attempt.stage, lastLines, error);
}

type RunningLaunch = Pick<LaunchContext, "host" | "attempt">;

/** What a launch learns from a browser once that answers. */
type ReadyParts = Pick<
  Launched,
  "cdp" | "pages" | "downloads" | "version" | "baseline" | "extensions" | "attestation" | "log"
>;

/** Waits until it has answered, its first page is open, and its extensions and its egress are in force. */
async function awaitReady(
  started: ChromiumProcess,
  prepared: PreparedLaunch,
  { host, attempt }: RunningLaunch,
): Promise<ReadyParts> {
  const { spec, directories, workspace } = prepared;
  const log = host.log.child({ browser: spec.browser });
  const cdp = new Cdp(started.pipe, host.clock);
  const pages = new Pages(cdp, spec, log);
  const downloads = new Downloads(cdp, directories.downloads);
  const answer = firstAnswer(cdp, downloads, host.launchLimitMs);
  const version = await attempt.untilHalted(answer.catch(awaitExit));
  attempt.enter("answer");
  const page = await attempt.untilHalted(pages.first);
  attempt.enter("page");
  if (wasUsed(prepared, attempt)) await attempt.untilHalted(giveCookies(workspace, cdp).catch(awaitExit));
  const baseline =
    spec.isForOne || attempt.adopted
      ? undefined
      : await attempt.untilHalted(firstFingerprint({ cdp, directories }, page).catch(awaitExit));
  const extensions = await loadExtensions(cdp, prepared, { host, attempt });
  // This comes after the baseline, because the answer of a server that the operator names may stay in the
  // cache.
  const attestation = await attestLaunched(started, { cdp, page, spec }, { host, attempt });
  if (host.limits.maxCpuPercent !== null) await prepared.cgroup?.throttle(host.limits.maxCpuPercent);
  return { cdp, pages, downloads, version, baseline, extensions, attestation, log };
}

async function firstAnswer(cdp: Cdp, downloads: Downloads, limitMs: Millis): Promise<Chromium["version"]> {
  const [{ product, protocolVersion, userAgent }] = await Promise.all([
    cdp.send("Browser.getVersion", {}, { limitMs }),
    cdp.send("Target.setDiscoverTargets", { discover: true }, { limitMs }),
    downloads.allow({ limitMs }),
  ]);
  return { product, protocolVersion, userAgent };
}

async function firstFingerprint(
  browser: Parameters<typeof takeFingerprint>[0],
  targetId: string,
): Promise<Fingerprint> {
  const page = await attachTo(browser.cdp, targetId);
  const fingerprint = await takeFingerprint(browser, page);
  await browser.cdp.leave(page.session);
  return fingerprint;
}

async function loadExtensions(
  cdp: Cdp,
  { directories: { profile }, extensions: wanted, withoutFiles }: PreparedLaunch,
  { host: { clock, launchLimitMs: limitMs }, attempt }: RunningLaunch,
): Promise<BrowserExtensions> {
  const extensions = new BrowserExtensions(cdp, clock, withoutFiles);
  if (wanted.length === 0) return extensions;
  attempt.enter("extensions");
  const loading = await attempt.untilHalted(extensions.start(wanted, { profile, limitMs }).catch(awaitExit));
  if (loading.kind !== "loaded") throw new Error(reasonOf(loading));
  return extensions;
}

const running = (
  started: ChromiumProcess,
  prepared: PreparedLaunch,
  { host, attempt, found }: RunningLaunch & { readonly found: ReadyParts },
): RunningChromium =>
  new RunningChromium({
    ...started,
    ...found,
    spec: prepared.spec,
    workspace: prepared.workspace,
    directories: prepared.directories,
    given: prepared.extensions,
    isAdopted: attempt.adopted !== undefined,
    isolation: isolationOf(prepared, host),
    canary: host.canary,
    failedEnds: host.failedEnds,
    clock: host.clock,
    stops: attempt.stops,
    startSidecar: (sidecar) => startSidecar(prepared, host, sidecar),
    ...(prepared.display && { display: prepared.display }),
    ...(prepared.cgroup && { cgroup: prepared.cgroup }),
  });

/** True where something of an earlier browser may be in its directories. */
const wasUsed = ({ isFilled }: PreparedLaunch, { adopted }: LaunchAttempt): boolean =>
  adopted !== undefined || isFilled;

async function attestLaunched(
  { pid }: ChromiumProcess,
  { cdp, page, spec }: { cdp: Cdp; page: string; spec: LaunchSpec },
  { host, attempt }: RunningLaunch,
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

function isolationOf(prepared: PreparedLaunch, host: BrowserHost): Isolation {
  const {
    spec,
    uid,
    walls: { rung, sandbox },
  } = prepared;
  return {
    rung,
    files: hasPrivateRoot(rung) ? "own" : "host",
    tenants: hasPrivateRoot(rung) ? "many" : "one",
    sandbox,
    uid,
    limits: limitsInForce({ ...host, countsAlone: countsAlone(prepared) }),
    network: networkOf(spec),
  };
}

function networkOf({ egress }: LaunchSpec): Isolation["network"] {
  if (egress === undefined) return "none";
  return egress.namespace === undefined ? "proxy" : "namespace";
}

/**
 * Starts a program beside a browser: it has the browser's uid and is counted with it, and ends with it where
 * there are cgroups. Throws, with a text for people, where it cannot.
 */
function startSidecar(
  prepared: PreparedLaunch,
  { prlimit }: Pick<BrowserHost, "prlimit">,
  { command, files, memoryBytes }: Sidecar,
): Promise<StartedProcess> {
  const { cgroup, walls } = prepared;
  const limited = [...sidecarLimits(prlimit, memoryBytes), ...command];
  return startWalled(
    walls,
    [...(cgroup?.prefix ?? []), ...walls.sidecar(insideOf(prepared), limited, files)],
    {
      stdio: ["pipe", "pipe", "ignore", "pipe", "pipe"],
      // A session of its own, so that no signal of a terminal reaches it.
      detached: true,
      cwd: "/",
      env: {},
    },
  );
}
