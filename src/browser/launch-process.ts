import { once } from "node:events";
import { realpath } from "node:fs/promises";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import { type Clock, pause } from "../base/clock.js";
import { openPipe, type Pipe } from "./cdp/pipe.js";
import type { Directories, Exit } from "./chromium.js";
import type { BrowserHost } from "./host.js";
import type { ShownCopy } from "./isolation/private-root.js";
import { hasPrivateRoot } from "./isolation/rungs.js";
import type { StartedBrowser } from "./resources/start-process.js";
import { startBrowser } from "./isolation/syscall-filter.js";
import type { LaunchAttempt } from "./launch-attempt.js";
import { countsAlone, insideOf, type PreparedLaunch } from "./launch-preparation.js";
import { limitsInside } from "./resources/limits.js";
import { endProcessTree } from "./resources/process-tree.js";
import { type SwitchFacts, switchesOf } from "./switches.js";

export interface ChromiumProcess {
  readonly child: StartedBrowser;
  readonly pid: number;
  readonly pipe: Pipe;
  readonly exited: Promise<Exit>;
}

export async function factsOf(
  { spec, executable, walls, directories, extensions }: PreparedLaunch,
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

export async function spawnChromium(
  prepared: PreparedLaunch,
  host: BrowserHost,
  facts: SwitchFacts,
): Promise<StartedBrowser> {
  const { cgroup, spec, executable, walls, directories, display } = prepared;
  const limits = limitsInside({ ...host, memoryBytes: spec.memoryBytes, countsAlone: countsAlone(prepared) });
  const command = [...limits, executable, ...switchesOf(spec, facts)];
  const executableCopy = await findCopy(executable, host);
  const inside = { ...insideOf(prepared), ...(executableCopy && { executableCopy }) };
  return await startBrowser(walls, [...(cgroup?.prefix ?? []), ...walls.browser(inside, command)], {
    ...environmentOf(directories),
    ...display?.environment,
  });
}

async function findCopy(
  executable: string,
  { executableCopies }: BrowserHost,
): Promise<ShownCopy | undefined> {
  const copy = await executableCopies?.find(executable);
  return copy === undefined ? undefined : { executable: await realpath(executable), copy };
}

/** The whole environment of a browser: nothing of the daemon's own gets in. */
const environmentOf = ({ root, temporary }: Directories): Record<string, string> => ({
  // Chromium starts programs of a desktop by their names, such as xdg-open; here it finds none.
  PATH: "/nonexistent",
  HOME: root,
  TMPDIR: temporary,
  XDG_CONFIG_HOME: `${temporary}/config`,
  XDG_CACHE_HOME: `${temporary}/cache`,
  XDG_DATA_HOME: `${temporary}/data`,
  XDG_RUNTIME_DIR: temporary,
  LANG: "C.UTF-8",
  // There is no desktop to talk to. Chromium finds out faster that a named bus is missing than that it has to
  // search for one.
  DBUS_SESSION_BUS_ADDRESS: `unix:path=${temporary}/no-bus`,
});

interface ProcessParts {
  readonly prepared: PreparedLaunch;
  readonly host: BrowserHost;
  readonly attempt: LaunchAttempt;
  readonly lastLines: () => readonly string[];
}

export function watchProcess(
  child: StartedBrowser,
  { prepared, host, attempt, lastLines }: ProcessParts,
): ChromiumProcess {
  const exited = exitOf(child, lastLines, host.clock).then(async (exit) => ({
    ...exit,
    memory: await prepared.cgroup?.memory(),
  }));
  attempt.stops.add("processes", () => endProcessTree({ pid: child.pid, exited }, host.clock));
  child.once("error", (error) => attempt.halt(error));
  void exited.then(({ code, signal }) =>
    attempt.halt(new Error(`it ended ${signal ? `by ${signal}` : `with code ${code}`}`)),
  );
  const [, , , input, output] = child.stdio;
  return {
    child,
    pid: child.pid,
    pipe: openPipe(input as Writable, output as Readable, {
      counting: (cut) => host.received.open(prepared.spec.browser, cut),
    }),
    exited,
  };
}

/** Its last words may arrive this long after the process has ended. */
const lastWordsMs = 50;

/** bwrap(1) ends with 128 and the number of the signal that ended what it had started. */
function signalled(code: number | null, signal: Exit["signal"]): Pick<Exit, "code" | "signal"> {
  const name = Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0];
  return name === undefined ? { code, signal } : { code: null, signal: name as NodeJS.Signals };
}

/** Settles with the end of `child`. Call it before anything is awaited: the process may end at once. */
async function exitOf(
  child: StartedBrowser,
  lastLines: () => readonly string[],
  clock: Clock,
): Promise<Exit> {
  const ended = new Promise<Pick<Exit, "code" | "signal">>((resolve) => {
    child.once("exit", (code, signal) => resolve(signalled(code, signal)));
    child.once("error", () => resolve({ code: null, signal: null }));
  });
  const silent = once(child.stderr as Readable, "end").catch(() => {});
  const { code, signal } = await ended;
  await Promise.race([silent, pause(clock, lastWordsMs)]);
  return { code, signal, lastLines: lastLines() };
}
